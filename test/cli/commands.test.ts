import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { createTerminalStream } from "../../src/cli/terminal-log.ts";
import { createLog } from "../../src/log.ts";
import { runInlet } from "../support/command.ts";
import { PROGRAM_ENV } from "../support/gateway-process.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Preload script that prints all loaded modules when the process exits. */
const LOADED = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { process.stderr.write(url + "\\n"); return next(url, context); } });`;

describe("the program", () => {
  it.each([
    "--version",
    "--help",
    "start --help",
  ])("does not load the gateway or the gateway's libraries for %s", async (option) => {
    const preload = `data:text/javascript,${encodeURIComponent(LOADED)}`;
    const args = ["--import", preload, join(ROOT, "src/main.ts"), ...option.split(" ")];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env: PROGRAM_ENV });
    const loaded = stderr.split("\n");
    expect(loaded.some((url) => url.endsWith("src/main.ts"))).toBe(true);
    // Only the help of `start` may load the settings.
    const needed =
      option === "start --help"
        ? "commander/|string-width/|get-east-asian-width/|strip-ansi/|ansi-regex/|ansi-styles/|wrap-ansi/|zod|ipaddr\\.js"
        : "commander/";
    const others = new RegExp(`src/gateway[/.]|node_modules/(?!${needed})`);
    expect(loaded.filter((url) => others.test(url))).toEqual([]);
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    if (option === "--version") expect(stdout).toBe(`${version}\n`);
    else expect(stdout).toContain(option === "--help" ? "rotate-master-key" : "INLET_PORT");
  });
});

it("inlet completion bash makes bash complete commands and options", async () => {
  const bin = mkdtempSync(join(tmpdir(), "inlet-bin-"));
  try {
    symlinkSync(join(ROOT, "src/inlet.js"), join(bin, "inlet"));
    const path = `${bin}:${dirname(process.execPath)}:${PROGRAM_ENV.PATH}`;
    const script = `source <(inlet completion bash); source <(inlet completion bash)
      COMP_WORDS=(inlet channels pau) COMP_CWORD=2; __inlet_complete; echo "\${COMPREPLY[@]}"
      COMP_WORDS=(inlet tail --si) COMP_CWORD=2; __inlet_complete; echo "\${COMPREPLY[@]}"
      COMP_WORDS=(inlet completion "") COMP_CWORD=2; __inlet_complete; echo "\${COMPREPLY[@]}"
      complete -p inlet`;
    const options = { env: { ...PROGRAM_ENV, PATH: path } };
    const { stdout } = await promisify(execFile)("bash", ["-c", script], options);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.trim()),
    ).toEqual(["pause", "--since", "bash zsh fish", "complete -o default -F __inlet_complete inlet"]);
  } finally {
    rmSync(bin, { recursive: true });
  }
});

it.each([
  ["restore", ""],
  ["backup", "--config", "x", ""],
  ["apply", "-f", "set"],
  ["restore", "a.tar", "--data-dir", ""],
])("inlet complete leaves the completion of file names to the shell: %s %s %s %s", async (...words) => {
  expect(await runInlet(["complete", "--", ...words])).toEqual({ code: 0, stdout: ":0\n", stderr: "" });
});

/** Returns everything that was written. Without a size, `read` returns only the first chunk in Node.js 26. */
const readWritten = (terminal: PassThrough): string => String(terminal.read(terminal.readableLength));

describe("the log at a terminal", () => {
  it("leaves out the usual events of a start until the gateway is ready, but no warnings", async () => {
    const terminal = Object.assign(new PassThrough(), { hasColors: () => false });
    const stream = createTerminalStream(terminal as unknown as NodeJS.WriteStream, { hasQuietStart: true });
    const log = createLog({ level: "info", destination: stream });
    log.info({ event: "server.ready" }, "server ready");
    log.warn({ event: "a.c" }, "a warning");
    log.info({ event: "gateway.ready" }, "gateway is ready");
    log.info({ event: "redis.ready" }, "Redis accepts events");
    const lines = readWritten(terminal).trimEnd().split("\n");
    expect(lines).toEqual([
      expect.stringMatching(/warn {2}a warning$/),
      expect.stringMatching(/info {2}Redis accepts events$/),
    ]);
  });

  it("shows each log entry as a readable line with all fields", async () => {
    const terminal = Object.assign(new PassThrough(), { hasColors: () => false });
    const stream = createTerminalStream(terminal as unknown as NodeJS.WriteStream);
    const log = createLog({ level: "info", destination: stream });
    log.info({ event: "a.b", port: 8080, roles: ["api"] }, "it is ready");
    log.warn({ event: "a.c", err: new Error("away", { cause: new Error("refused") }) }, "it waits");
    const [first, second, third] = readWritten(terminal).split("\n");
    expect(first).toMatch(/^\d\d:\d\d:\d\d info {2}it is ready port=8080 roles=\[ 'api' \]$/);
    expect(second).toMatch(/ warn {2}it waits$/);
    expect(third).toBe("  Error: away");
  });
});
