import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, type Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { hasPermission } from "../../session/session.ts";

type App = Schemas["App"];

/** Uid of the built-in app to which Inlet publishes an organization's problems. */
export const SYSTEM_APP = "inlet";

/** Maximum number of apps in the app switcher, which loads one page of the API. Further apps are on the apps page. */
export const MAX_APPS = 200;

/** Apps in the app switcher, or `undefined` while they are loading. */
export const apps = signal<readonly App[] | undefined>(undefined);
/** Returns the uid of an app, or its id if the app is not among the loaded ones. */
export const nameOfApp = (id: string): string => apps.value?.find((app) => app.id === id)?.uid ?? id;

const STORAGE_KEY = "inlet.app";
const lastId = signal<string | undefined>(sessionStorage.getItem(STORAGE_KEY) ?? undefined);

/** Returns the app id in the URL, also if it is the filter of a list. Without one, returns the most recently viewed app, or the first app. */
export function useAppId(): string | undefined {
  const { path, query } = useLocation();
  const named = /^\/console\/apps\/([^/]+)/.exec(path)?.[1] ?? query.app;
  useEffect(() => {
    if (named === undefined) return;
    lastId.value = named;
    sessionStorage.setItem(STORAGE_KEY, named);
  }, [named]);
  const known = apps.value;
  const last = lastId.value;
  // Do not select the built-in system app by default, because it only contains the organization's problems.
  const first = known?.find(({ uid }) => uid !== SYSTEM_APP) ?? known?.[0];
  return named ?? (known?.some(({ id }) => id === last) ? last : first?.id);
}

/** Reloads the apps in the app switcher. Call this after an app was installed or deleted. */
export async function reloadApps(): Promise<void> {
  if (!hasPermission("apps.read")) {
    apps.value = [];
    return;
  }
  const { rows } = await api.list("/apps", { query: { limit: MAX_APPS } });
  apps.value = rows;
}

/** Removes the parameters that name something in an app, such as its channel or the open row. */
function withoutPlaces(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { channel: _, group: __, item: ___, letter: ____, source: _____, ...others } = query;
  return others;
}

/** Opens the current view for another app. */
export function AppSwitcher() {
  const { path, query, route } = useLocation();
  const current = useAppId();
  const known = apps.value ?? [];
  if (known.length === 0) return null;
  const choose = (id: string): void => {
    const view = /^\/console\/apps\/[^/]+(\/[^/]+)?/.exec(path)?.[1] ?? "";
    lastId.value = id;
    sessionStorage.setItem(STORAGE_KEY, id);
    if (/^\/console\/apps\/[^/]+/.test(path)) route(`/console/apps/${id}${view}`);
    else if (query.app !== undefined) route(`${path}${formatQuery({ ...withoutPlaces(query), app: id })}`);
  };
  return (
    <label class="app-switcher">
      <span class="nav-title">App</span>
      <select value={current} onChange={(event) => choose(event.currentTarget.value)}>
        {known.map(({ id, uid }) => (
          <option key={id} value={id}>
            {uid}
          </option>
        ))}
      </select>
    </label>
  );
}
