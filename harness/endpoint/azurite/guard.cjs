// Loaded before Azurite, and before npm. The harness holds the other end of standard input; when it is gone,
// however it went, the pipe ends and so does this process.
"use strict";
process.stdin.on("end", () => process.exit(0));
process.stdin.on("error", () => process.exit(0));
process.stdin.resume();
// Who has nothing else to do any more ends by itself.
process.stdin.unref();
// Azurite loads its telemetry also where that is disabled, and that is two fifths of what its start takes.
const modules = require("module");
const load = modules._load;
modules._load = (name, ...more) => (name === "applicationinsights" ? {} : load(name, ...more));
