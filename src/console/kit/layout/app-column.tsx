import type { Column } from "../list/table.tsx";
import { nameOfApp } from "./apps.tsx";

/** Column for lists of all apps. */
export const APP_COLUMN: Column<{ readonly appId: string }> = {
  title: "App",
  cell: ({ appId }) => nameOfApp(appId),
  priority: 2,
};

/** Returns the columns for a list that may be filtered by an app. The rows of a single app need no column for it. */
export const columnsFor = <Row,>(
  columns: readonly Column<Row>[],
  appId: string | undefined,
): readonly Column<Row>[] =>
  appId === undefined ? columns : columns.filter(({ title }) => title !== APP_COLUMN.title);
