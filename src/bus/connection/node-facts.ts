/** The facts that one Redis server reports. */
export interface NodeFacts {
  readonly version: string;
  readonly isLoading: boolean;
  readonly isReplica: boolean;
  readonly isCluster: boolean;
  readonly evictionPolicy: string | undefined;
  /** Used over allowed memory, 0 to 1 and above; without `maxmemory` over the machine's. */
  readonly memoryUsedFraction: number | undefined;
  /** `maxmemory`; undefined: none is set. */
  readonly maxMemoryBytes: number | undefined;
  readonly appendOnly: boolean;
  /** `always`, `everysec`, `no`; undefined where CONFIG may not be read. */
  readonly appendFsync: string | undefined;
  readonly hasWaitAof: boolean;
  readonly connectedReplicas: number;
}

export const MEMORY_ALARM_FRACTION = 0.85;

/** Sends a command and resolves with its reply; strings as strings. */
export type SendCommand = (command: string, args: readonly string[]) => Promise<unknown>;

/** Reads the facts; one that the server may not show is unknown, not an error, except INFO itself. */
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

/** A reason why the server is unfit at any durability; it stops the start. */
export function unfitness(facts: NodeFacts): string | undefined {
  if (Number.parseInt(facts.version, 10) < 7) {
    return `Redis ${facts.version} is too old: 7.0 or later is needed`;
  }
  if (facts.evictionPolicy !== undefined && facts.evictionPolicy !== "noeviction") {
    return `maxmemory-policy is ${facts.evictionPolicy}, which throws away acknowledged events: set noeviction`;
  }
  return undefined;
}

/** A state that passes by itself: the server loads, or is a replica until a failover or the next look. */
export function passingProblem(facts: NodeFacts): string | undefined {
  if (facts.isLoading) return "Redis is loading its data";
  return facts.isReplica ? "Redis is a read-only replica" : undefined;
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}
