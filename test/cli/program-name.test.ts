import { execFile } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { adaptCommands, findProgramName } from "../../src/cli/program-name.ts";
import { runInlet } from "../support/command.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";

const run = promisify(execFile);
const cwd = join(import.meta.dirname, "../..");
const NPX = { npm_lifecycle_script: "inlet" };

it.each([
  [{}, "inlet"],
  [{ npm_lifecycle_script: "inlet" }, "npx inlet"],
  [{ npm_lifecycle_script: "'inlet' 'tail'" }, "npx inlet"],
  [{ npm_lifecycle_script: "'inlet-gateway'" }, "npx inlet"],
  [{ npm_lifecycle_script: "exec node src/main.ts" }, "npx inlet"],
  [{ npm_lifecycle_script: "vitest run test/cli/inlet.test.ts" }, "inlet"],
  [
    { npm_lifecycle_script: "'inlet'", npm_config_package: "node@24\n\ninlet-gateway" },
    "npx -p node@24 -p inlet-gateway inlet",
  ],
])("recognizes how the program was started: %j is %s", (env, name) => {
  expect(findProgramName(env)).toBe(name);
});

it.each([
  ["Run `inlet login`.", "Run `npx inlet login`."],
  ["inlet keys revoke key_1 && inlet logout", "npx inlet keys revoke key_1 && npx inlet logout"],
  ["`inlet --help` and `inlet <command> --help`", "`npx inlet --help` and `npx inlet <command> --help`"],
  ["echo $KEY | inlet login", "echo $KEY | npx inlet login"],
  ["INLET_DATA_DIR=a inlet start", "INLET_DATA_DIR=a npx inlet start"],
  [
    "To remove it: inlet apps delete inlet --purge, then inlet blueprints delete a",
    "To remove it: npx inlet apps delete inlet --purge, then npx inlet blueprints delete a",
  ],
  ["the app inlet has no channel", "the app inlet has no channel"],
  ["~/.config/inlet login and npx inlet login", "~/.config/inlet login and npx inlet login"],
])("adapts commands, and no other text: %s", (text, adapted) => {
  expect(adaptCommands(text, NPX)).toBe(adapted);
  expect(adaptCommands(text, {})).toBe(text);
});

it("prints commands of help, errors and notes with the adapted name", async () => {
  const help = await runInlet(["keys", "--help"], { env: NPX });
  expect(help.stdout).toContain("Usage: npx inlet keys");
  expect(help.stdout).toContain("  $ npx inlet keys create ci");
  expect(help.stdout).not.toMatch(/(?<!npx )inlet keys/);
  expect(await runInlet(["keys"], { env: { ...NPX, HOME: "/none" } })).toMatchObject({
    stderr: expect.stringContaining("Run `npx inlet login`"),
  });
});

it("is `npx inlet` if npx or npm start has started the program", async () => {
  const options = { cwd, env: { ...PROGRAM_ENV, HOME: homedir() } };
  for (const [file, args] of [
    ["npx", ["inlet"]],
    ["npm", ["start", "--"]],
  ] as const) {
    const { stdout } = await run(file, [...args, "logout", "--help"], options);
    expect(stdout).toContain("stored by `npx inlet login`");
  }
  const { stdout } = await run(process.execPath, ["src/main.ts", "logout", "--help"], options);
  expect(stdout).toContain("stored by `inlet login`");
});
