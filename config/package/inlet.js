#!/usr/bin/env node
// Entry point of the npm package. Its syntax works in older releases of Node.js too, so that they print this message.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 24 || (major === 24 && minor >= 12)) {
  await import("./src/main.js");
} else {
  console.error(
    `Inlet needs Node.js 24.12 or later, but this is Node.js ${process.versions.node}. Install a newer version from https://nodejs.org, ` +
      "or let npx download one: npx -p node@24 -p inlet-gateway inlet",
  );
  process.exitCode = 1;
}
