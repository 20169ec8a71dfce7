import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { toApiError } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { hasPermission } from "../../session/session.ts";

export type App = Pick<Schemas["App"], "id" | "uid" | "title">;

/** Uid of the built-in app to which Inlet publishes an organization's problems. */
export const SYSTEM_APP = "inlet";

/** Number of apps whose names are loaded at the start. Further apps are loaded when they are used. */
export const MAX_APPS = 200;

/** Apps whose names are loaded, or `undefined` while they are loading. */
export const apps = signal<readonly App[] | undefined>(undefined);
/** Returns the uid of an app. If the app is not among the loaded ones, returns its id and loads its name. */
export function nameOfApp(id: string): string {
  const app = apps.value?.find((one) => one.id === id);
  if (app === undefined && apps.value !== undefined) requestName(id);
  return app?.uid ?? id;
}

/** Number of names that are loaded at once. */
const NAMES_AT_ONCE = 8;
const requested = new Set<string>();
const waiting: string[] = [];

/** Loads the name of an app once. Names that are requested meanwhile are loaded afterwards. */
function requestName(id: string): void {
  if (requested.has(id) || !hasPermission("apps.read")) return;
  requested.add(id);
  waiting.push(id);
  if (waiting.length === 1) queueMicrotask(loadNames);
}

async function loadNames(): Promise<void> {
  for (let ids = waiting.slice(0, NAMES_AT_ONCE); ids.length > 0; ids = waiting.slice(0, NAMES_AT_ONCE)) {
    // Ignore a failure. The lists then show the id.
    const found = await Promise.all(ids.map((id) => findMissing([], id).catch(() => undefined)));
    waiting.splice(0, ids.length);
    addApps(found.filter((app) => app !== undefined));
  }
}

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

/** Reloads the names of the apps. Call this after an app was installed or deleted. */
export async function reloadApps(): Promise<void> {
  if (!hasPermission("apps.read")) {
    apps.value = [];
    return;
  }
  requested.clear();
  const { rows } = await api.list("/apps", { query: { limit: MAX_APPS } });
  const last = await findMissing(rows, lastId.value);
  apps.value = last === undefined ? rows : [...rows, last];
}

/** Loads the name of an app that is not among the loaded ones, such as an app in a link. */
export async function loadApp(id: string): Promise<void> {
  const app = await findMissing(apps.value ?? [], id);
  if (app !== undefined) addApp(app);
}

/** Loads an app. Returns `undefined` if it is already known or does not exist. */
async function findMissing(known: readonly App[], id: string | undefined): Promise<App | undefined> {
  if (id === undefined || known.some((app) => app.id === id)) return undefined;
  try {
    return await api.get("/apps/{appId}", { path: { appId: id } });
  } catch (error) {
    if (toApiError(error).status === 404) return undefined;
    throw error;
  }
}

/** Adds an app whose name is known from another response. */
export const addApp = (app: App): void => addApps([app]);

function addApps(found: readonly App[]): void {
  const known = apps.value ?? [];
  const added = found.filter((app) => !known.some(({ id }) => id === app.id));
  if (added.length > 0) apps.value = [...known, ...added];
}

/** Selects an app for views that need one. */
export function selectApp(app: App): void {
  addApp(app);
  lastId.value = app.id;
  sessionStorage.setItem(STORAGE_KEY, app.id);
}
