import type { ColumnType } from "kysely";

/**
 * A `json` column. Queries return the parsed value, but writes need JSON text, because `pg` would write a JavaScript array as a
 * PostgreSQL array.
 */
export type Json<T> = ColumnType<T, string, string>;
export type Timestamp = ColumnType<Date, Date, Date>;

export interface Timestamps {
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
