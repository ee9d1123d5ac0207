// An application with @azure/data-tables that counts its own answers. Prints one JSON array: each answer with kind,
// partition, status, x-ms-client-request-id and address, as the HTTP client of the SDK received it.
"use strict";
const { AzureNamedKeyCredential, TableClient } = require("@azure/data-tables");
const { createDefaultHttpClient } = require("@azure/core-rest-pipeline");

const TABLE = "orders";
const STALE = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"";
const text = process.env.AZURE_STORAGE_CONNECTION_STRING;
const answers = [];
let step = { kind: "", partition: "" };

const real = createDefaultHttpClient();
const httpClient = {
  async sendRequest(request) {
    const answer = await real.sendRequest(request);
    let status = answer.status;
    if (status === 202) {
      const parts = [...(answer.bodyAsText ?? "").matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((found) => Number(found[1]));
      status = parts.find((part) => part >= 300) ?? status;
    }
    const id = request.headers.get("x-ms-client-request-id") ?? "";
    answers.push({ ...step, status, id, request: `${request.method} ${request.url}` });
    return answer;
  },
};
// With "account" by the account's name and key alone.
const byAccount = process.argv.includes("account");
const { AZURE_STORAGE_ACCOUNT: account, AZURE_STORAGE_KEY: key } = process.env;
const options = { allowInsecureConnection: !byAccount, httpClient };
const clientOf = (more) =>
  byAccount
    ? new TableClient(`https://${account}.table.core.windows.net`, TABLE, new AzureNamedKeyCredential(account, key), more)
    : TableClient.fromConnectionString(text, TABLE, more);
const table = clientOf(options);
const impatient = clientOf({ ...options, retryOptions: { maxRetries: 0 } });

async function take(kind, partition, call) {
  step = { kind, partition };
  try {
    await call();
  } catch (error) {
    if (error.statusCode === undefined) throw error;
  }
}

async function all(pages) {
  for await (const page of pages) void page;
}

const entity = (partitionKey, rowKey, more = {}) => ({ partitionKey, rowKey, ...more });
const upserts = (key, count) =>
  Array.from({ length: count }, (_, number) => ["upsert", entity(key, `${number}`.padStart(3, "0"), { N: number })]);

async function main() {
  await take("", "", () => table.createTable());
  for (const row of ["1", "2", "3", "1"]) await take("insert", "p", () => table.createEntity(entity("p", row)));
  await take("insert", "o'clock ü", () => table.createEntity(entity("o'clock ü", "%+ r")));
  for (const mode of ["Merge", "Replace"]) {
    const name = mode.toLowerCase();
    const row = entity("u", name, { Text: name });
    await take(`upsert_${name}`, "u", () => table.upsertEntity(row, mode));
    await take(`update_${name}`, "u", () => table.updateEntity(row, mode));
    await take(`update_${name}`, "u", () => table.updateEntity(entity("u", "absent"), mode));
  }
  await take("update_replace", "p", () => table.updateEntity(entity("p", "1"), "Replace", { etag: STALE }));
  for (const row of ["1", "none"]) await take("point_query", "p", () => table.getEntity("p", row));
  for (let times = 0; times < 2; times += 1) await take("delete", "p", () => table.deleteEntity("p", "2"));
  await take("transaction", "t", () => table.submitTransaction(upserts("t", 20)));
  await take("transaction", "t", () =>
    table.submitTransaction([
      ["upsert", entity("t", "100")],
      ["create", entity("t", "001")],
    ]),
  );
  const query = (filter, maxPageSize) => () => all(table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize }));
  await take("partition_scan", "t", query("PartitionKey eq 't'", 7));
  const rows = "PartitionKey eq 't' and RowKey ge '005' and RowKey lt '015'";
  await take("row_range_scan", "t", query(`${rows} and N gt 9`, 7));
  await take("partition_range_scan", "/", query("PartitionKey ge 'p' and PartitionKey lt 'q'", 1000));
  await take("full_table_scan", "/", query(undefined, 9));
  for (let times = 0; times < 2; times += 1) {
    await take("transaction", "hot", () => table.submitTransaction(upserts("hot", 100)));
  }
  await take("transaction", "hot", () => impatient.submitTransaction(upserts("hot", 100)));
}

// Connections that are kept open would keep the process for seconds.
main().then(() => process.stdout.write(`${JSON.stringify(answers)}\n`, () => process.exit(0)));
