import type { QuarantineFilter, QuarantineStore } from "../../../bus/quarantine/quarantine.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { SchemaCompiler } from "../../../lib/json-schema/compiled-schema.ts";
import type { Log } from "../../../log.ts";
import type { RedriveDeps } from "./redrive.ts";

export interface QuarantineDeps extends RedriveDeps {
  readonly db: Queryable;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  readonly explain: Explain;
  readonly schemas: Pick<SchemaCompiler, "compile">;
  /** Aborts when the gateway ends. */
  readonly stopping: AbortSignal;
  readonly log: Log;
}

export interface Filters {
  readonly channelId?: string | undefined;
  readonly reason?: QuarantineFilter["reason"] | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}
