import type { ColumnType, Selectable } from "kysely";
import type { JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import type { Timestamps } from "./columns.ts";

export interface StatesTable extends Timestamps {
  id: string;
  organizationId: string;
  name: string;
  description: string | null;
}

export interface VariablesTable extends Timestamps {
  id: string;
  organizationId: string;
  stateId: string;
  name: string;
  /** Null is a scope like any other: a name stands once in it. */
  scopeId: string | null;
  groupIds: string[];
  tags: string[];
  schema: ColumnType<JsonSchema | null, string | null, string | null>;
}

export type StateRow = Selectable<StatesTable>;
export type VariableRow = Selectable<VariablesTable>;
