// Every kind of request that @azure/storage-queue sends. Prints a line of JSON for each answer, and one for what each
// call returned or threw.
//
//   node script.cjs '{"url": ..., "account": ..., "key": ...}'
"use strict";
const { QueueServiceClient, StorageSharedKeyCredential, newPipeline } = require("@azure/storage-queue");
const recording = require("../recording.cjs");

const { url, account, key } = JSON.parse(process.argv[2]);
const QUEUE = "differential";
const TEXTS = ["", " ", "x", "<a> & ]]> 'b' \"c\"", "ünïcödé 日本語 😀", "\t\n", "\u0000", "x".repeat(65_536), "x".repeat(65_537)];
const NAMES = ["ab", "a".repeat(63), "a".repeat(64), "UPPER", "a--b", "-a", "a_b", "ünï", "a b", "$root"];

const pipeline = newPipeline(new StorageSharedKeyCredential(account, key), { retryOptions: { maxTries: 1 } });
// The option httpClient is for clients of an older form.
pipeline._coreHttpClient = recording.httpClient;
const service = new QueueServiceClient(url, pipeline);
const queue = service.getQueueClient(QUEUE);

// What changes with each request, or is large, is in the answers.
function plain(value) {
  const left = ["date", "requestId", "clientRequestId", "request", "response", "_response", "stack", "details"];
  return JSON.stringify(value, (name, inner) => (left.includes(name) ? undefined : inner));
}

function say(label, call, partition = QUEUE) {
  return recording.say({ label, table: partition === null ? "" : "(queues)", partition }, call, plain);
}

async function messages() {
  for (const [number, text] of TEXTS.entries()) {
    await say(`put ${number}`, () => queue.sendMessage(text));
  }
  await say("put with times", () => queue.sendMessage("later", { messageTimeToLive: -1, visibilityTimeout: 3 }));
  await say("put with bad times", () => queue.sendMessage("never", { messageTimeToLive: 1, visibilityTimeout: 3 }));
  for (const numberOfMessages of [undefined, 1, 2, 32, 0, 33, -1]) {
    await say(`peek ${numberOfMessages}`, () => queue.peekMessages({ numberOfMessages }));
  }
  let got = [];
  await say("get two", async () => {
    const answer = await queue.receiveMessages({ numberOfMessages: 2, visibilityTimeout: 60 });
    got = answer.receivedMessageItems;
    return answer;
  });
  const [one, other] = got;
  await say("update", async () => {
    const answer = await queue.updateMessage(one.messageId, one.popReceipt, "changed", 60);
    one.popReceipt = answer.popReceipt;
    return answer;
  });
  await say("update without text", () => queue.updateMessage(other.messageId, other.popReceipt, undefined, 60));
  await say("update with an old receipt", () => queue.updateMessage(other.messageId, other.popReceipt, "x", 60));
  await say("delete with an old receipt", () => queue.deleteMessage(other.messageId, other.popReceipt));
  await say("delete", () => queue.deleteMessage(one.messageId, one.popReceipt));
  await say("delete again", () => queue.deleteMessage(one.messageId, one.popReceipt));
  for (const numberOfMessages of [32, 32, 0, 33]) {
    await say(`get ${numberOfMessages}`, () => queue.receiveMessages({ numberOfMessages, visibilityTimeout: 60 }));
  }
  await say("count", () => queue.getProperties());
  await say("clear", () => queue.clearMessages());
  await say("get nothing", () => queue.receiveMessages());
}

async function main() {
  await say("service", () => service.getProperties(), null);
  await say("create", () => queue.create({ metadata: { owner: "tests" } }));
  await say("create again", () => queue.create());
  await say("set metadata", () => queue.setMetadata({ owner: "others" }));
  await say("metadata", () => queue.getProperties());
  await say("access policy", () => queue.getAccessPolicy());
  await messages();
  for (const name of NAMES) {
    const named = service.getQueueClient(name);
    await say(`create ${name}`, () => named.create(), name);
    await say(`put in ${name}`, () => named.sendMessage("x"), name);
    await say(`get from ${name}`, () => named.receiveMessages(), name);
    await say(`delete ${name}`, () => named.delete(), name);
  }
  await say("list", async () => {
    const names = [];
    for await (const item of service.listQueues()) names.push(item.name);
    return names;
  }, null);
  await say("delete queue", () => queue.delete());
  await say("put in no queue", () => queue.sendMessage("x"));
}

// Connections that are kept open would keep the process for seconds.
main().then(() => process.stdout.write("", () => process.exit(0)));
