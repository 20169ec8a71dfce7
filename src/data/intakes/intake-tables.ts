import type { Generated } from "kysely";
import type { Timestamp } from "../columns.ts";

/** Installs that own the route keys of their blueprint's intake. */
export interface RouteKeysTable {
  blueprintId: string;
  key: string;
  appId: string;
  /** Whether the intake may hold items of the key that must be published before later ones. */
  held: Generated<boolean>;
  createdAt: Timestamp;
}
