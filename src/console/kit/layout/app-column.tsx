import type { Column } from "../list/table.tsx";
import { UntrustedText } from "../text/untrusted-text.tsx";
import { nameOfApp } from "./apps.tsx";

/** Column for lists of all apps. */
export const APP_COLUMN: Column<{ readonly appId: string }> = {
  title: "App",
  cell: ({ appId }) => <UntrustedText max={80}>{nameOfApp(appId)}</UntrustedText>,
  priority: 2,
};
