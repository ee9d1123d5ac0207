// Readings of forty sensors, written in the order of time.
//
// PartitionKey is the second of a reading, RowKey the millisecond and the sensor: every insert goes to the end of the
// table. A gateway in the field sends ten readings at once; a monitor reads what came in the second before.
//
//     npm install @azure/data-tables
//     harness watch --trace append-only-log.parquet -- node readings.cjs
"use strict";
const { TableClient } = require("@azure/data-tables");

const SECONDS = 20;
const INSERTS_PER_S = 110;
const TRANSACTIONS_PER_S = 5;
const QUERIES_PER_S = 2;
const SENSORS = 40;

const named = {
  name: "named",
  sendRequest(request, next) {
    request.headers.set("User-Agent", "readings");
    return next(request);
  },
};
const options = { allowInsecureConnection: true, additionalPolicies: [{ position: "perRetry", policy: named }] };
const table = TableClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING, "readings", options);
const working = new Set();
let made = 0;

function reading(at) {
  const number = made++;
  const sensor = `sensor${String((number * 7) % SENSORS).padStart(2, "0")}`;
  return {
    partitionKey: at.toISOString().slice(0, 19),
    rowKey: `${at.toISOString().slice(20, 23)}-${String(number).padStart(6, "0")}__${sensor}`,
    Celsius: 20 + (number % 100) / 10,
    Raw: "x".repeat(500),
  };
}

async function insert() {
  await table.createEntity(reading(new Date()));
}

async function insertTen() {
  const at = new Date();
  await table.submitTransaction(Array.from({ length: 10 }, () => ["create", reading(at)]));
}

async function readSecondBefore() {
  const second = new Date(Date.now() - 1000).toISOString().slice(0, 19);
  const rows = table.listEntities({ queryOptions: { filter: `PartitionKey eq '${second}'` } });
  for await (const row of rows) void row;
}

function every(action, perSecond, until) {
  const began = Date.now();
  let number = 0;
  const timer = setInterval(() => {
    while (number < ((Date.now() - began) / 1000) * perSecond) {
      number++;
      const one = action().finally(() => working.delete(one));
      working.add(one);
    }
    if (Date.now() > until) clearInterval(timer);
  }, 5);
}

async function main() {
  await table.createTable();
  const until = Date.now() + SECONDS * 1000;
  every(insert, INSERTS_PER_S, until);
  every(insertTen, TRANSACTIONS_PER_S, until);
  every(readSecondBefore, QUERIES_PER_S, until);
  await new Promise((done) => setTimeout(done, SECONDS * 1000 + 100));
  await Promise.all(working);
}

main();
