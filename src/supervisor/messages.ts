import type { DatabaseConnection } from "../data/database.ts";
import type { HealthReport } from "../http/health.ts";
import type { LeaseReply, LeaseRequest } from "../limits/leased-budgets.ts";
import type { Share } from "../limits/share.ts";
import type { TakenTokens } from "../limits/shared-rates.ts";
import type { MetricsFormat, MetricsSnapshot } from "../metrics/open-metrics.ts";

/** Everything that a process needs to know at its start. */
export interface StartMessage {
  readonly type: "start";
  /** Number of the process, from 1. A replacement has the number of the process that it replaces. */
  readonly process: number;
  readonly processes: number;
  /** Whether the process runs sources and handlers, or only serves connections, or both. */
  readonly work: Work;
  /** The part of this process in the limits of those that run sources. */
  readonly sourceShare: Share;
  readonly dataDir: string;
  readonly port: number;
  readonly database: DatabaseConnection;
  readonly redisUrl: string;
  readonly areEmbedded: boolean;
  readonly isNewKey: boolean;
}

export type Work = "all" | "connections" | "background";

/** Replies of a process to `report`. */
export interface Readings {
  readonly health: HealthReport;
  readonly metrics: MetricsSnapshot;
}

/** Readings of the whole machine that a process can ask for: its health, or its metrics in this format. */
export type MachineReading = "health" | MetricsFormat;

/** Rate limit tokens that a process has taken. The supervisor sends them to the other processes, so that all count the same traffic. */
interface RatesMessage {
  readonly type: "rates";
  readonly taken: readonly TakenTokens[];
}

export type ToProcess =
  | StartMessage
  | RatesMessage
  | LeaseReply
  /** Comes with a connection. */
  | { readonly type: "connection" }
  | { readonly type: "greet" }
  /** Asks for `reported`. */
  | { readonly type: "report"; readonly what: keyof Readings; readonly id: number }
  /** Reply to `ask`. */
  | { readonly type: "answer"; readonly id: number; readonly answer: HealthReport | string }
  | { readonly type: "servers"; readonly problems: readonly string[] }
  /** Stops the process. A process that is replaced closes its connections when they are idle. Otherwise it waits for `close`. */
  | { readonly type: "drain"; readonly isReplaced: boolean }
  | { readonly type: "close" };

export type ToSupervisor =
  | RatesMessage
  | LeaseRequest
  /** The process accepts connections, but is still starting. */
  | { readonly type: "listening" }
  | { readonly type: "ready" }
  /** The process has greeted the operator, in reply to `greet`. */
  | { readonly type: "greeted" }
  /** The process has received a connection. */
  | { readonly type: "took" }
  /** Asks for `answer`. */
  | { readonly type: "ask"; readonly what: MachineReading; readonly id: number }
  | { readonly type: "reported"; readonly id: number; readonly reading: Readings[keyof Readings] | undefined }
  /** Values just before the end of the process. */
  | { readonly type: "last"; readonly metrics: MetricsSnapshot };
