export interface NodeFacts {
  readonly version: string;
  readonly isLoading: boolean;
  readonly isReplica: boolean;
  readonly isCluster: boolean;
  readonly evictionPolicy: string | undefined;
  /** Used memory divided by `maxmemory`, or by the machine's memory if `maxmemory` is not set. Can exceed 1. `undefined` if unknown. */
  readonly memoryUsedFraction: number | undefined;
  /** `undefined` if `maxmemory` is not set. */
  readonly maxMemoryBytes: number | undefined;
  readonly appendOnly: boolean;
  /** Value of `appendfsync`: `always`, `everysec` or `no`. `undefined` if Redis rejects CONFIG. */
  readonly appendFsync: string | undefined;
  readonly hasWaitAof: boolean;
  readonly connectedReplicas: number;
}

export const MEMORY_ALARM_FRACTION = 0.85;

export type SendCommand = (command: string, args: readonly string[]) => Promise<unknown>;

/** Reads facts about a Redis server. Only INFO must succeed: if Redis rejects another command, its facts are `undefined` or false. */
export async function readNodeFacts(send: SendCommand): Promise<NodeFacts> {
  const [info, config, waitAof] = await Promise.all([
    send("info", []),
    send("config", ["get", "appendfsync"]).catch(() => []),
    send("command", ["info", "waitaof"]).catch(() => []),
  ]);
  const fields = parseInfo(String(info));
  const maxMemory = Number(fields.get("maxmemory") ?? 0) || Number(fields.get("total_system_memory") ?? 0);
  return {
    version: fields.get("redis_version") ?? "0",
    isLoading: fields.get("loading") === "1",
    isReplica: fields.get("role") === "slave",
    isCluster: fields.get("cluster_enabled") === "1",
    evictionPolicy: fields.get("maxmemory_policy"),
    memoryUsedFraction: maxMemory > 0 ? Number(fields.get("used_memory") ?? 0) / maxMemory : undefined,
    maxMemoryBytes: Number(fields.get("maxmemory") ?? 0) || undefined,
    appendOnly: fields.get("aof_enabled") === "1",
    appendFsync: Array.isArray(config) && typeof config[1] === "string" ? config[1] : undefined,
    hasWaitAof: Array.isArray(waitAof) && Array.isArray(waitAof[0]),
    connectedReplicas: Number(fields.get("connected_slaves") ?? 0),
  };
}

/**
 * Returns the reason why the gateway cannot use this Redis at any durability level, or `undefined`. The gateway does not start with
 * such a server.
 */
export function findUnfitReason(facts: NodeFacts): string | undefined {
  if (Number.parseInt(facts.version, 10) < 7) {
    return `Redis ${facts.version} is too old; install version 7.0 or later`;
  }
  if (facts.evictionPolicy !== undefined && facts.evictionPolicy !== "noeviction") {
    return `maxmemory-policy is ${facts.evictionPolicy}, which deletes acknowledged events when memory is full; set it to noeviction`;
  }
  return undefined;
}

/**
 * Returns a problem that ends without action by the operator, such as loading data or a failover. Returns `undefined` if there is
 * none.
 */
export function findTemporaryProblem(facts: NodeFacts): string | undefined {
  if (facts.isLoading) return "Redis is loading its data";
  return facts.isReplica ? "Redis is a read-only replica" : undefined;
}

/** Parses the reply of INFO. */
export function parseInfo(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
