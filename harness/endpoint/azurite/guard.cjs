// Loaded before Azurite. The harness holds the other end of standard input; when it is gone,
// however it went, the pipe ends and so does this process.
"use strict";
process.stdin.on("end", () => process.exit(0));
process.stdin.on("error", () => process.exit(0));
process.stdin.resume();
