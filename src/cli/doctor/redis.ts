import {
  computeDurability,
  type DurabilityDemand,
  durabilityProblem,
  unchosenDurability,
} from "../../bus/connection/durability.ts";
import { withTemporaryClient } from "../../bus/connection/general-connection.ts";
import {
  findTemporaryProblem,
  findUnfitReason,
  MEMORY_ALARM_FRACTION,
  type NodeFacts,
  parseInfo,
  readNodeFacts,
} from "../../bus/connection/node-facts.ts";
import type { Config } from "../../config/schema.ts";
import { addressName, parseRedisAddresses, type RedisAddress } from "../../lib/addresses/redis-address.ts";
import { checkClock } from "./check-clock.ts";
import { type Found, ok, warning, wrong } from "./check-result.ts";
import { findPatchedRelease, readRelease, type ServerRelease } from "./redis-releases.ts";

const TIMEOUT_MS = 3_000;

type Settings = Pick<Config, "redisUrls" | "durability" | "durabilityAsserted">;

/** Connects to each external Redis server and checks it. Changes nothing there. */
export async function checkExternalRedis(settings: Settings): Promise<readonly Found[]> {
  const addresses = parseRedisAddresses(settings.redisUrls.join(","));
  return (await Promise.all(addresses.map((address) => checkServer(address, settings)))).flat();
}

async function checkServer(address: RedisAddress, settings: Settings): Promise<readonly Found[]> {
  const check = `Redis ${addressName(address)}`;
  try {
    return await withTemporaryClient(address, TIMEOUT_MS, async (client) => {
      const facts = await readNodeFacts((command, args) => client.call(command, ...args));
      const info = parseInfo(String(await client.call("info")));
      const sentMs = Date.now();
      const [seconds = 0, micros = 0] = (await client.time()).map(Number);
      const serverMs = seconds * 1000 + micros / 1000;
      return [
        checkFitness(check, facts),
        checkDurability(check, facts, settings),
        checkMemory(check, facts),
        ...checkRelease(check, readRelease(info)),
        ...checkDisk(check, info),
        checkClock(check, { serverMs, sentMs, receivedMs: Date.now() }),
      ];
    });
  } catch (error) {
    return [
      wrong(
        check,
        `cannot be reached: ${error instanceof Error ? error.message : String(error)}`,
        "Check REDIS_URL (address, user and password), and whether Redis accepts connections from this machine.",
      ),
    ];
  }
}

function checkFitness(check: string, facts: NodeFacts): Found {
  const unfit = findUnfitReason(facts);
  if (unfit !== undefined)
    return wrong(check, unfit, "Change it as described. The gateway does not start with this Redis.");
  const temporary = findTemporaryProblem(facts);
  return temporary === undefined
    ? ok(check, `version ${facts.version}${facts.isCluster ? ", part of a cluster" : ""}`)
    : warning(check, temporary, "Wait until it is over. Until then, hooks respond with 503.");
}

function checkDurability(check: string, facts: NodeFacts, settings: Settings): Found {
  const name = `${check}: durability`;
  const demand: DurabilityDemand = {
    level: settings.durability ?? "none",
    asserted: settings.durabilityAsserted,
  };
  const problem = durabilityProblem(facts, demand);
  if (problem !== undefined)
    return wrong(name, problem, "Change one of them. The gateway does not start with this Redis.");
  const held = computeDurability(facts, demand);
  if (settings.durability !== undefined) return ok(name, held);
  const unchosen = unchosenDurability(held);
  return warning(name, unchosen.message, unchosen.suggestedAction);
}

function checkMemory(check: string, { memoryUsedFraction: used, maxMemoryBytes }: NodeFacts): Found {
  const name = `${check}: memory`;
  if (used === undefined) return ok(name, "unknown, because Redis does not report it");
  const text = `${Math.round(used * 100)} % of ${maxMemoryBytes === undefined ? "the machine's memory" : "maxmemory"} used`;
  if (used >= 1 && maxMemoryBytes !== undefined) return wrong(name, `Redis is full: ${text}`, FULL_ACTION);
  return used > MEMORY_ALARM_FRACTION ? warning(name, text, FILLING_ACTION) : ok(name, text);
}

function checkRelease(check: string, release: ServerRelease): readonly Found[] {
  const patched = findPatchedRelease(release);
  if (patched === undefined) return [];
  const { name, version } = release;
  return [
    warning(
      `${check}: security fixes`,
      `${name} ${version} lacks security fixes, unless the distribution has added them to this version`,
      `Install ${name} ${patched} or a later release. See the page Operating.`,
    ),
  ];
}

function checkDisk(check: string, info: ReadonlyMap<string, string>): readonly Found[] {
  const failed = ["aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"].filter(
    (field) => info.get(field) === "err",
  );
  return failed.length === 0
    ? []
    : [wrong(`${check}: disk`, `Redis cannot write its files (${failed.join(", ")})`, FULL_ACTION)];
}

/** Suggested actions of the alert rules `InletRedisNotReady` and `InletRedisFilling`. */
const FULL_ACTION =
  "See /readyz for the reason. If Redis is full, free memory or raise maxmemory. If it cannot save, check its disk.";
const FILLING_ACTION =
  "Give it more memory, shorten the retention of large topics, or let slow readers catch up.";
