import type { Generated, Selectable } from "kysely";
import type { Json, Timestamps } from "./columns.ts";

export interface FormsTable extends Timestamps {
  id: string;
  organizationId: string;
  uid: string;
  title: string;
  description: string | null;
  /** Null: none, or it was deleted. */
  blueprintId: string | null;
  /** The form that this one is a version of. */
  versionParentId: string | null;
  /** Accounts, which need not be there any more. */
  createdById: string;
  updatedById: string;
  /** Counts the writes. */
  version: Generated<number>;
  /** As `resources/forms` has checked it. */
  content: Json<unknown>;
}

export type FormRow = Selectable<FormsTable>;
