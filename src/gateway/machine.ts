import type { Socket } from "node:net";
import type { DatabaseConnection } from "../data/database.ts";
import type { HealthReport } from "../http/health.ts";
import type { Budgets } from "../limits/budgets.ts";
import type { Share } from "../limits/share.ts";
import type { Rates } from "../limits/shared-rates.ts";
import type { MetricsFormat, MetricsSnapshot } from "../metrics/open-metrics.ts";

/** Services of a supervisor for one of its gateway processes. */
export interface Machine {
  /** Data directory that the supervisor has locked. */
  readonly dataDir: string;
  /** Number of gateway processes of this machine. */
  readonly processes: number;
  readonly stores: MachineStores;
  readonly connections: PassedConnections;
  /** Which part of a fixed amount this process has, if all processes that run sources share it. */
  readonly sourceShare: Share;
  /** Rates and budgets that all processes share. */
  readonly rates: Rates;
  readonly budgets: Budgets;
  /** Reads the health of all processes. */
  readonly health: () => Promise<HealthReport>;
  /** Renders the metrics of all processes, including counters of processes that have ended. */
  readonly metrics: (format: MetricsFormat) => Promise<string>;
  /** Called once with functions for the requests of the supervisor. */
  readonly provide: (own: OwnReadings) => void;
}

export interface OwnReadings {
  readonly health: () => Promise<HealthReport>;
  readonly metrics: () => Promise<MetricsSnapshot>;
}

/** Addresses of the servers that the supervisor runs or to which its settings refer. */
export interface MachineStores {
  readonly database: DatabaseConnection;
  readonly redisUrl: string;
  /** Whether the supervisor runs an embedded server. */
  readonly areEmbedded: boolean;
  /** Whether the supervisor has just created the master key. */
  readonly isNewKey: boolean;
  /** Returns the problems of the embedded servers, as last reported by the supervisor. */
  readonly problems: () => readonly string[];
}

/** Connections that the supervisor accepts and passes to this process. */
export interface PassedConnections {
  readonly port: number;
  /** Connections that are still open. */
  readonly open: ReadonlySet<Socket>;
  /** Registers the only receiver of connections. Connections may arrive at once. */
  readonly receive: (take: (socket: Socket) => void) => void;
}
