import type { ColumnType } from "kysely";

/** A `json` column: parsed when read, handed over as text (`pg` would make a PostgreSQL array of an array). */
export type Json<T> = ColumnType<T, string, string>;
export type Timestamp = ColumnType<Date, Date, Date>;

export interface Timestamps {
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
