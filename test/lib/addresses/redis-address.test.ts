import { expect, test } from "vitest";
import { parseRedisAddresses } from "../../../src/lib/addresses/redis-address.ts";

test.each([
  ["redis://h", [{ host: "h", port: 6379, db: 0 }]],
  [
    "redis://u:p%40@h:7/2, rediss://[::1]:8",
    [
      { host: "h", port: 7, db: 2, username: "u", password: "p@" },
      { host: "::1", port: 8, db: 0, tls: {} },
    ],
  ],
  ["unix://:s3@/run/a%20b.sock?db=4", [{ path: "/run/a b.sock", db: 4, password: "s3" }]],
])("parseRedisAddresses parses %s", (list, addresses) => {
  expect(parseRedisAddresses(list)).toEqual(addresses);
});

test.each([
  "",
  " , ",
  "localhost:6379",
  "http://h",
  "redis://h/x",
  "redis:///1",
  "unix://",
])("parseRedisAddresses rejects %j", (list) => {
  expect(() => parseRedisAddresses(list)).toThrow();
});

test("parseRedisAddresses throws errors that contain no credentials", () => {
  expect(() => parseRedisAddresses("http://user:hidden@h")).toThrow(/^(?!.*hidden)/);
});
