import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";

type Subscription = Schemas["Subscription"];

const counted = (count: number | null): string => (count === null ? "–" : formatCount(count));

export const STATE_COLUMN: Column<Subscription> = {
  title: "State",
  cell: ({ state }) => <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
  width: "6rem",
};

/** Columns of the events that a subscription has not processed. */
export const BACKLOG_COLUMNS: readonly Column<Subscription>[] = [
  { title: "Lag", cell: ({ lag }) => counted(lag), align: "end", width: "5rem" },
  {
    title: "Behind",
    cell: ({ lagSeconds }) => (lagSeconds === null ? "–" : formatDuration(lagSeconds * 1_000)),
    align: "end",
    width: "5rem",
    priority: 2,
  },
  { title: "Pending", cell: ({ pending }) => counted(pending), align: "end", width: "5rem", priority: 2 },
  {
    title: "Dead letters",
    cell: ({ deadLetters }) => counted(deadLetters),
    align: "end",
    width: "6rem",
    priority: 3,
  },
];
