import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { choiceFilter, type FilterField } from "../list/filters.tsx";
import { visibleText } from "../text/visible.ts";
import { AppDialog } from "./app-picker.tsx";
import { apps, MAX_APPS, nameOfApp } from "./apps.tsx";

type Topic = Schemas["Topic"];

/** Returns the filter that restricts a list of all apps to one app. */
export function createAppFilter(): FilterField {
  const known = apps.value ?? [];
  if (known.length >= MAX_APPS)
    return { name: "app", label: "App", kind: "search", labelOf: nameOfApp, Dialog: AppDialog };
  return choiceFilter(
    "app",
    "App",
    known.map(({ id }) => id),
    (id) => visibleText(nameOfApp(id)).slice(0, 80),
  );
}

const MAX_TOPICS = 200;
/** Maximum number of values in the list of a filter. With more values, the filter is a text field. */
const MAX_CHOICES = 100;

/**
 * Hook for filters by channel and event type. Offers the existing names of the app as a list, or a text field if there are too many or
 * `appId` is `undefined`.
 */
export function useTopicFilters(appId: string | undefined): {
  readonly channel: FilterField;
  readonly type: FilterField;
} {
  const { data } = useLoad<readonly Topic[]>(
    async (signal) => {
      if (appId === undefined) return [];
      const { rows, total } = await api.list("/apps/{appId}/topics", {
        path: { appId },
        query: { limit: MAX_TOPICS },
        signal,
      });
      return total > rows.length ? [] : rows;
    },
    [appId],
  );
  const named = (name: string, label: string, values: readonly string[]): FilterField => {
    const all = [...new Set(values)].sort();
    if (all.length === 0 || all.length > MAX_CHOICES) return { name, label, kind: "text" };
    return choiceFilter(name, label, all, (value) => visibleText(value).slice(0, 80));
  };
  return {
    channel: named("channel", "Channel", data?.map(({ channelUid }) => channelUid) ?? []),
    type: named("type", "Type", data?.map(({ type }) => type) ?? []),
  };
}
