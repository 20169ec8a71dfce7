import { describe, expect, it } from "vitest";
import { UnavailableError } from "../src/lib/errors.ts";
import { createLog, type Log } from "../src/log.ts";

function logged(write: (log: Log) => void): Record<string, unknown> {
  const lines: string[] = [];
  write(createLog({ level: "debug", destination: { write: (line) => void lines.push(line) } }));
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? "");
}

describe("a log line", () => {
  it("is one JSON object with the level name and an RFC 3339 time", () => {
    expect(logged((log) => log.info({ appId: "app_1" }, "done"))).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      appId: "app_1",
      msg: "done",
    });
  });

  it("contains no credential, even in nested objects", () => {
    const secret = "hunter2";
    const line = logged((log) =>
      log.info({
        password: secret,
        headers: { authorization: secret, cookie: secret },
        config: { verification: { secret }, redis: { password: secret } },
        secrets: [{ value: secret }],
      }),
    );
    expect(JSON.stringify(line)).not.toContain(secret);
    expect(line.password).toBe("[redacted]");
  });

  it("contains an error's message and cause, but no further properties that a database driver attached", () => {
    const refused = Object.assign(new Error("WRONGPASS invalid username-password pair"), {
      code: "WRONGPASS",
      command: { name: "auth", args: ["hunter2"] },
    });
    const direct = logged((log) => log.warn({ err: refused }));
    expect(direct.err).toMatchObject({ message: refused.message, code: "WRONGPASS" });
    const wrapped = logged((log) => log.warn({ err: new Error("Redis is away", { cause: refused }) }));
    expect(JSON.stringify(wrapped.err)).toContain("WRONGPASS");
    const several = logged((log) => log.warn({ err: new AggregateError([refused], "all failed") }));
    expect(JSON.stringify(several.err)).toContain("WRONGPASS");
    expect(JSON.stringify([direct, wrapped, several])).not.toContain("hunter2");
  });

  it("contains the messages of an unavailable server and of its cause, without their stacks", () => {
    const cause = new Error("connect ECONNREFUSED");
    const { err } = logged((log) => log.warn({ err: new UnavailableError("Redis is away", { cause }) }));
    expect(err).toEqual({ type: "UnavailableError", message: "Redis is away: connect ECONNREFUSED" });
  });
});
