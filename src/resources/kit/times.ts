import { timestamp } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";

/** When an entity was made and last changed: the fields of its schema. */
export const times = { createdAt: timestamp, updatedAt: timestamp };

/** The same of a row, as the API shows them. */
export const timesOf = (row: { readonly createdAt: Date; readonly updatedAt: Date }) => ({
  createdAt: formatTimestamp(row.createdAt.getTime()),
  updatedAt: formatTimestamp(row.updatedAt.getTime()),
});
