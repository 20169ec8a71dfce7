import type { ColumnType } from "kysely";

/**
 * A `json` column. Queries return the parsed value. Writes take JSON text, because `pg` would turn a JavaScript array into a
 * PostgreSQL array.
 */
export type Json<T> = ColumnType<T, string, string>;
export type Timestamp = ColumnType<Date, Date, Date>;

export interface Timestamps {
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
