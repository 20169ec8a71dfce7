import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { parseDuration, parseFuture, parseStart, parseTime } from "../../../src/cli/client/times.ts";
import { runInlet } from "../../support/command.ts";
import { PROGRAM_ENV } from "../../support/gateway-process.ts";

const run = promisify(execFile);
/** Local time, so that the tests pass in any time zone. */
const NOW = new Date(2026, 0, 31, 12, 30, 15);
const at = (...[day, hours = 0, minutes = 0, seconds = 0]: readonly number[]): string =>
  new Date(2026, 0, day, hours, minutes, seconds).toISOString();
const parse = (text: string, direction: "past" | "future"): string =>
  new Date(parseTime(text, direction, NOW.getTime())).toISOString();

it.each([
  ["15s", at(31, 12, 30, 0), at(31, 12, 30, 30)],
  ["10m", at(31, 12, 20, 15), at(31, 12, 40, 15)],
  ["2h", at(31, 10, 30, 15), at(31, 14, 30, 15)],
  ["7d", at(24, 12, 30, 15), at(38, 12, 30, 15)],
  ["12:05", at(31, 12, 5), at(32, 12, 5)],
  ["12:31", at(30, 12, 31), at(31, 12, 31)],
  ["9:00", at(31, 9), at(32, 9)],
  ["12:30:15", at(31, 12, 30, 15), at(31, 12, 30, 15)],
  ["2026-01-30", at(30), at(30)],
  ["2026-01-30 08:15", at(30, 8, 15), at(30, 8, 15)],
  ["2026-01-30T08:15:30", at(30, 8, 15, 30), at(30, 8, 15, 30)],
  ["2026-01-30T08:15Z", "2026-01-30T08:15:00.000Z", "2026-01-30T08:15:00.000Z"],
  ["2026-01-30t08:15:00.5z", "2026-01-30T08:15:00.500Z", "2026-01-30T08:15:00.500Z"],
  ["2026-01-30T08:15:00+02:00", "2026-01-30T06:15:00.000Z", "2026-01-30T06:15:00.000Z"],
])("parses %s as a past and as a future time", (text, past, future) => {
  expect([parse(text, "past"), parse(text, "future")]).toEqual([past, future]);
});

it.each([
  "",
  "yesterday",
  "2w",
  "24:00",
  "12:60",
  "12",
  "2026-02-30",
  "2026-13-01T00:00Z",
  "2026-01-31T25:00",
  "2026-01-31junk",
  "999999999d",
])("rejects %s", (text) => {
  expect(() => parseTime(text)).toThrow(
    "must be a duration such as 10m, 2h or 7d, a time of day such as 12:05",
  );
});

it("leaves now and earliest to the gateway, and returns other times in UTC", () => {
  expect(["now", "earliest", "2026-01-30T08:15+02:00"].map(parseStart)).toEqual([
    "now",
    "earliest",
    "2026-01-30T06:15:00.000Z",
  ]);
  expect(Date.parse(parseFuture("90d")) - Date.now()).toBeGreaterThan(89 * 86_400_000);
  expect(["90s", "2h", "1d"].map(parseDuration)).toEqual([90, 7_200, 86_400]);
});

it.each([
  "deliveries list",
  "events list",
  "quarantine list",
  "redrive",
  "intake redrive",
  "replay",
  "stats",
  "audit",
  "tail",
  "listen",
  "subscriptions create",
  "subscriptions rewind",
])("the help of %s shows examples of times and names the time zone", async (command) => {
  const { stdout } = await runInlet([...command.split(" "), "--help"]);
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  expect(stdout).toContain(`the last 12:05 in your time zone (${timeZone})`);
});

it("uses the time zone of the environment", async () => {
  const cwd = join(import.meta.dirname, "../../..");
  const env = { ...PROGRAM_ENV, TZ: "Asia/Tokyo" };
  const help = await run(process.execPath, ["src/main.ts", "keys", "create", "--help"], { cwd, env });
  expect(help.stdout).toContain("the next 12:05 in your time zone (Asia/Tokyo)");
  await expect(
    run(process.execPath, ["src/main.ts", "tail", "--since", "25:00"], { cwd, env }),
  ).rejects.toThrow("such as 2026-01-31T12:05 (time zone Asia/Tokyo) or 2026-01-31T12:05:00Z");
});
