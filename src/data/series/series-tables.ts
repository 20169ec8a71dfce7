import type { Generated } from "kysely";
import type { Timestamp } from "../columns.ts";

interface SeriesTable {
  id: Generated<number>;
  organizationId: string;
  appId: string;
  channel: string;
  /** Empty for the counts of a channel that have no type. */
  type: string;
  lastAt: Timestamp;
}

interface Count {
  seriesId: number;
  metric: string;
  /** The reason of quarantined items, or the status of rejected requests, otherwise empty. */
  detail: string;
  count: number;
  /** Counts of response times by bucket. `null` for other metrics. */
  buckets: number[] | null;
}

interface SeriesMinutesTable extends Count {
  minute: Timestamp;
}

interface SeriesHoursTable extends Count {
  hour: Timestamp;
}

/** The last write of each gateway process. */
interface SeriesWritesTable {
  writer: string;
  sequence: number;
  writtenAt: Timestamp;
}

export interface SeriesTables {
  series: SeriesTable;
  seriesMinutes: SeriesMinutesTable;
  seriesHours: SeriesHoursTable;
  seriesWrites: SeriesWritesTable;
}
