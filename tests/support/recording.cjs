// What the scripts of JavaScript's SDKs print: a line of JSON for each answer, and one for what each call returned or threw.
"use strict";
const { createDefaultHttpClient } = require("@azure/core-rest-pipeline");

let step = { label: "", table: "", partition: null };

function print(content) {
  process.stdout.write(JSON.stringify(content) + "\n");
}

const real = createDefaultHttpClient();
exports.httpClient = {
  async sendRequest(request) {
    const answer = await real.sendRequest(request);
    const id = "x-ms-client-request-id";
    print({
      ...step,
      status: answer.status,
      headers: [...answer.headers],
      body: Buffer.from(answer.bodyAsText ?? "").toString("base64"),
      same_id: answer.headers.has(id) ? answer.headers.get(id) === request.headers.get(id) : null,
    });
    return answer;
  },
};

// About a call: its label, table and partition. What it returns is made plain.
exports.say = async function (about, call, plain) {
  step = about;
  let result;
  try {
    result = plain(await call());
  } catch (error) {
    result = `${error.name} ${error.statusCode} ${error.code} ${error.message}`;
  }
  print({ label: about.label, result: result ?? null });
};
