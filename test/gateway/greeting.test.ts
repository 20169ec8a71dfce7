import { expect, it } from "vitest";
import { formatRedisCli, renderProcessesHint } from "../../src/gateway/greeting.ts";
import { parseRedisAddresses } from "../../src/lib/addresses/redis-address.ts";

it.each([
  ["redis://h", false, "redis-cli -h 'h' -p 6379"],
  ["rediss://[::1]:7/2", false, "redis-cli -h '::1' -p 7 --tls -n 2"],
  ["redis://a,redis://b", true, "redis-cli -h 'a' -p 6379 -c"],
  ["redis://me:hidden@h", false, "redis-cli -h 'h' -p 6379 --user 'me' --askpass"],
  ["unix:///it's%20here/redis.sock", false, "redis-cli -s '/it'\\''s here/redis.sock'"],
])("the startup message contains a redis-cli command for %s without the password", (urls, cluster, line) => {
  expect(formatRedisCli(parseRedisAddresses(urls)[0], { cluster })).toBe(line);
});

it.each([
  { made: { apiKey: "ik_1" }, processes: 1, cores: 4, hint: "one of 4 cores. INLET_PROCESSES=auto" },
  { made: { apiKey: "ik_1" }, processes: 1, cores: 3, hint: "" },
  { made: { apiKey: "ik_1" }, processes: 2, cores: 8, hint: "" },
  { made: {}, processes: 1, cores: 8, hint: "" },
])("names INLET_PROCESSES only at the first start on a machine with unused cores: %j", (given) => {
  const { made, processes, cores, hint } = given;
  expect(renderProcessesHint(made, processes, cores)).toEqual(hint && expect.stringContaining(hint));
});
