import type { Selectable } from "kysely";
import type { Json, Timestamps } from "./columns.ts";

export interface CollectionsTable extends Timestamps {
  id: string;
  organizationId: string;
  name: string;
  description: string | null;
}

export type FieldKind =
  | "text"
  | "number"
  | "boolean"
  | "date"
  | "dateTime"
  | "email"
  | "url"
  | "choice"
  | "json";

export interface CollectionFieldsTable extends Timestamps {
  id: string;
  organizationId: string;
  collectionId: string;
  name: string;
  description: string | null;
  kind: FieldKind;
  /** What a choice is made of; else empty. */
  options: string[];
  required: boolean;
  isUnique: boolean;
}

export interface CollectionRecordsTable extends Timestamps {
  id: string;
  organizationId: string;
  collectionId: string;
  /** By the ids of fields; none is null. */
  values: Json<Readonly<Record<string, unknown>>>;
}

/** The values of unique fields. */
export interface CollectionUniqueValuesTable {
  fieldId: string;
  /** SHA-256 of the value as JSON. */
  digest: Buffer;
  recordId: string;
}

export type CollectionRow = Selectable<CollectionsTable>;
export type CollectionFieldRow = Selectable<CollectionFieldsTable>;
export type CollectionRecordRow = Selectable<CollectionRecordsTable>;
