// Every kind of request that @azure/data-tables sends. Prints a line of JSON for each answer, and one for what each
// call returned or threw.
//
//   node script.cjs '{"url": ..., "account": ..., "key": ...}'
"use strict";
const {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableServiceClient,
  generateTableSas,
  odata,
} = require("@azure/data-tables");
const recording = require("../recording.cjs");

const { url, account, key } = JSON.parse(process.argv[2]);
const TABLE = "differential";
const STALE = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"";
const SPECIAL_KEYS = [
  "", " ", "a b", "%", "%25", "100%", "+", "a+b", "&", "=", "a=b&c=d", ",", ";", ":", "@", "!", "o'clock", "''", "(x)",
  "$", "*", "~", '"', "<>", "[]{}|^`", "ünïcödé", "日本語", "😀", "P", "p", "PartitionKey=", "RowKey='", "Tables",
  "$batch", "comp=acl", "a/b", "a\\b", "a#b", "a?b", "x".repeat(512), "ü".repeat(300), "\u200b", "a\tb",
];

const options = { allowInsecureConnection: true, httpClient: recording.httpClient, retryOptions: { maxRetries: 0 } };
const credential = new AzureNamedKeyCredential(account, key);
const service = new TableServiceClient(url, credential, options);
const table = new TableClient(url, TABLE, credential, options);
const missing = new TableClient(url, "missing", credential, options);

// What changes with each request, or is large, is in the answers.
function plain(value) {
  const left = ["date", "requestId", "clientRequestId", "request", "response", "timestamp", "stack", "details"];
  return JSON.stringify(value, (name, inner) => {
    if (left.includes(name)) return undefined;
    if (typeof inner === "bigint") return `${inner}n`;
    return inner;
  });
}

function say(label, partition, call, about = TABLE) {
  return recording.say({ label, table: about, partition }, call, plain);
}

async function all(pages) {
  const found = [];
  for await (const page of pages) found.push(page);
  return found;
}

const entity = (partitionKey = "p", rowKey = "r", more = {}) => ({ partitionKey, rowKey, ...more });
const EVERY_TYPE = {
  Text: "ünïcödé \" \\ / 'x' \u2028 😀",
  Empty: "",
  Blob: Uint8Array.from({ length: 256 }, (_, byte) => byte),
  Flag: true,
  Number: 2 ** 31 - 1,
  Long: 2n ** 63n - 1n,
  Ratio: 0.1,
  Whole: { type: "Double", value: "3.0" },
  Endless: { type: "Double", value: "Infinity" },
  Id: { type: "Guid", value: "00000000-0000-0000-0000-000000000007" },
  Then: new Date("1987-06-05T04:03:02.100Z"),
  Url: "http://127.0.0.1:10002/devstoreaccount1",
};

async function writes() {
  const row = entity("p", "r", EVERY_TYPE);
  await say("insert", "p", () => table.createEntity(row));
  await say("insert again", "p", () => table.createEntity(row));
  await say("every type", "types", () => table.upsertEntity(entity("types", "r", EVERY_TYPE)));
  await say("get every type", "types", () => table.getEntity("types", "r"));
  for (const mode of ["Merge", "Replace"]) {
    for (const count of [0, 1]) {
      await say(`upsert ${mode} ${count}`, "p", () => table.upsertEntity(entity("p", `upsert-${mode}`), mode));
    }
    await say(`update ${mode}`, "p", () => table.updateEntity(entity("p", "r", { Number: 2 }), mode));
    await say(`update ${mode} absent`, "p", () => table.updateEntity(entity("p", "absent"), mode));
  }
  let etag;
  await say("get", "p", async () => {
    const found = await table.getEntity("p", "r");
    etag = found.etag;
    return found;
  });
  const changed = entity("p", "r", { Number: 3 });
  for (const mode of ["Merge", "Replace"]) {
    await say(`update ${mode} stale`, "p", () => table.updateEntity(changed, mode, { etag: STALE }));
  }
  await say("update fresh", "p", () => table.updateEntity(changed, "Merge", { etag }));
  await say("update stale by now", "p", () => table.updateEntity(changed, "Replace", { etag }));
  await say("delete stale", "p", () => table.deleteEntity("p", "r", { etag: STALE }));
  await say("delete", "p", () => table.deleteEntity("p", "r"));
  await say("delete again", "p", () => table.deleteEntity("p", "r"));
  await say("get deleted", "p", () => table.getEntity("p", "r"));
  const texts = (name, count) =>
    Object.fromEntries(Array.from({ length: count }, (_, number) => [`${name}${number}`, "x".repeat(32_000)]));
  const large = entity("large", "r", texts("Text", 15));
  await say("large entity", "large", () => table.upsertEntity(large));
  await say("get large entity", "large", () => table.getEntity("large", "r"));
  await say("too large entity", "large", () => table.upsertEntity({ ...large, ...texts("More", 20) }));
  await say("too large property", "large", () =>
    table.upsertEntity(entity("large", "b", { Blob: new Uint8Array(65_537) })),
  );
}

async function specialKeys() {
  for (const [number, special] of SPECIAL_KEYS.entries()) {
    for (const [key, row] of [[special, `r${number}`], ["q", special]]) {
      const name = JSON.stringify([key, row]).slice(0, 60);
      await say(`insert ${name}`, key, () => table.createEntity(entity(key, row, { N: 1 })));
      await say(`upsert ${name}`, key, () => table.upsertEntity(entity(key, row, { N: 2 })));
      await say(`update ${name}`, key, () => table.updateEntity(entity(key, row, { N: 3 })));
      await say(`get ${name}`, key, () => table.getEntity(key, row));
      const filter = odata`PartitionKey eq ${key} and RowKey eq ${row}`;
      await say(`query ${name}`, key, () => all(table.listEntities({ queryOptions: { filter } }).byPage()));
      if (number % 2) await say(`delete ${name}`, key, () => table.deleteEntity(key, row));
    }
  }
}

async function transactions() {
  const rows = Array.from({ length: 101 }, (_, number) => entity("t", `${number}`.padStart(3, "0"), { Number: number }));
  const submit = (label, actions, key = "t") =>
    say(`transaction ${label}`, key, () => table.submitTransaction(actions));
  await submit("of a hundred inserts", rows.slice(0, 100).map((row) => ["create", row]));
  await submit("that inserts again", rows.slice(0, 3).map((row) => ["create", row]));
  await submit("of every kind", [
    ["create", entity("t", "new", { Text: "ü'%+" })],
    ["upsert", rows[0], "Merge"],
    ["upsert", rows[1], "Replace"],
    ["update", rows[2], "Merge"],
    ["update", rows[3], "Replace"],
    ["delete", rows[4]],
  ]);
  await submit("that deletes again", [["upsert", rows[0]], ["delete", rows[4]]]);
  await submit("with an absent row", [["upsert", rows[5]], ["update", entity("t", "none")]]);
  await submit("with a stale row", [["upsert", rows[5]], ["update", rows[6], "Merge", { etag: STALE }]]);
  await submit("of one", [["upsert", rows[7]]]);
  await submit("of special keys", [["upsert", entity("o'clock ü", "%+ '", { Number: 1 })]], "o'clock ü");
  await submit("with a row twice", [["upsert", rows[8]], ["upsert", rows[8]]]);
  await submit("of a hundred and one", rows.map((row) => ["upsert", row]));
  const text = "x".repeat(30_000);
  await submit(
    "of 3 MB",
    Array.from({ length: 50 }, (_, number) => ["upsert", entity("t", `l${number}`, { Text: text, More: text })]),
  );
}

async function queries() {
  const found = (queryOptions, pages = {}) => all(table.listEntities({ queryOptions }).byPage(pages));
  const filters = [
    ["PartitionKey eq 't'", "t"],
    ["PartitionKey eq 't' and RowKey ge '010' and RowKey lt '020'", "t"],
    ["PartitionKey eq 't' and Number gt 90", "t"],
    ["PartitionKey eq 'nobody'", "nobody"],
    ["PartitionKey ge 'p' and PartitionKey lt 'u'", null],
    ["Number ge 95 or Number lt 2", null],
    ["not (Number ge 5) and Number ne 3", null],
    ["Text eq 'ü''%+'", null],
    ["Flag eq true and Long ge 5L and Ratio lt 0.5", null],
    ["Then eq datetime'1987-06-05T04:03:02.100Z'", null],
    ["Id eq guid'00000000-0000-0000-0000-000000000007'", null],
    ["no filter at all", null],
    ["PartitionKey eq 't' and (", null],
  ];
  for (const [filter, key] of filters) await say(`query ${filter}`, key, () => found({ filter }));
  const filter = "PartitionKey eq 't' and RowKey lt '030'";
  for (const maxPageSize of [1, 7, 1000]) {
    await say(`pages of ${maxPageSize}`, "t", () => found({ filter }, { maxPageSize }));
  }
  await say("pages of all", null, () => found({}, { maxPageSize: 40 }));
  await say("too large page", null, () => found({}, { maxPageSize: 1001 }));
  for (const select of [["RowKey"], ["PartitionKey", "RowKey", "Number"], ["Nothing"], ["Timestamp"]]) {
    await say(`select ${select}`, "t", () => found({ filter: "PartitionKey eq 't'", select }));
  }
  await say("get with select", "t", () => table.getEntity("t", "001", { queryOptions: { select: ["Number"] } }));
}

async function refusals() {
  const of = "missing";
  await say("insert in no table", "p", () => missing.createEntity(entity()), of);
  await say("upsert in no table", "p", () => missing.upsertEntity(entity()), of);
  await say("update in no table", "p", () => missing.updateEntity(entity()), of);
  await say("get in no table", "p", () => missing.getEntity("p", "r"), of);
  await say("delete in no table", "p", () => missing.deleteEntity("p", "r"), of);
  await say("transaction in no table", "p", () => missing.submitTransaction([["upsert", entity()]]), of);
  await say("query in no table", null, () => all(missing.listEntities()), of);
  await say("delete no table", null, () => missing.deleteTable(), of);
  const wrong = new TableClient(url, TABLE, new AzureNamedKeyCredential(account, "d3Jvbmc="), options);
  await say("wrong key", "p", () => wrong.getEntity("p", "r"));
  const sas = generateTableSas(TABLE, credential, {
    permissions: { query: true },
    expiresOn: new Date("2090-01-01T00:00:00Z"),
  });
  const reader = new TableClient(url, TABLE, new AzureSASCredential(sas), options);
  await say("get with SAS", "t", () => reader.getEntity("t", "001"));
  await say("query with SAS", null, () => all(reader.listEntities().byPage({ maxPageSize: 50 })));
  await say("write with SAS for reading", "t", () => reader.upsertEntity(entity("t", "sas")));
  await say("transaction with SAS for reading", "t", () => reader.submitTransaction([["upsert", entity("t", "sas")]]));
}

async function settings() {
  const retentionPolicy = { enabled: true, days: 5 };
  const metrics = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy };
  await say("properties", null, () => service.getProperties(), "");
  await say(
    "set properties",
    null,
    () =>
      service.setProperties({
        logging: { version: "1.0", read: true, write: true, delete: true, retentionPolicy },
        hourMetrics: metrics,
        minuteMetrics: metrics,
        cors: [
          {
            allowedOrigins: "http://page.example",
            allowedMethods: "GET,PUT",
            allowedHeaders: "x-ms-*",
            exposedHeaders: "x-ms-*",
            maxAgeInSeconds: 60,
          },
        ],
      }),
    "",
  );
  await say("properties then", null, () => service.getProperties(), "");
  await say("statistics", null, () => service.getStatistics(), "");
  await say("access policy", null, () => table.getAccessPolicy(), "");
  const start = new Date("1999-01-01T00:00:00Z");
  const identifier = { id: "reader", accessPolicy: { permission: "raud", start, expiry: start } };
  await say("set access policy", null, () => table.setAccessPolicy([identifier]), "");
  await say("access policy then", null, () => table.getAccessPolicy(), "");
}

async function main() {
  await say("create table", null, () => service.createTable(TABLE));
  await say("create it again", null, () => service.createTable(TABLE));
  await say("create it by its client", null, () => table.createTable());
  await say("invalid name", null, () => service.createTable("a-b"), "");
  await say("list tables", null, () => all(service.listTables().byPage()), "");
  const filter = odata`TableName eq ${TABLE}`;
  await say("query tables", null, () => all(service.listTables({ queryOptions: { filter } })), "");
  await writes();
  await specialKeys();
  await transactions();
  await queries();
  await refusals();
  await settings();
  await say("list entities at the end", null, () => all(table.listEntities().byPage()));
  await say("delete table", null, () => service.deleteTable(TABLE));
  await say("query deleted table", null, () => all(table.listEntities().byPage()));
}

// Connections that are kept open would keep the process for seconds.
main().then(() => process.stdout.write("", () => process.exit(0)));
