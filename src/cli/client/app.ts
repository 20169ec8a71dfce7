import type { Channel } from "../../channels/entity.ts";
import type { Match } from "../../resources/events/lookup/match.ts";
import { CommandError, usageError } from "../exit.ts";
import { escapeText } from "../output/escape.ts";
import type { Output } from "../output/output.ts";
import type { Column } from "../output/table.ts";
import { type Api, formatPath } from "./api.ts";
import type { App } from "./entities.ts";

/**
 * Finds an app by id or uid. If neither is given, returns the only app.
 *
 * @throws CommandError
 */
export async function findApp(api: Api, named: string | undefined): Promise<App> {
  const { items } = await api.list<App>("/apps");
  // Exclude the system app, which belongs to the gateway itself. It is the only app without a space.
  const own = items.filter(({ spaceId }) => spaceId !== null);
  const found = named === undefined ? own : items.filter(({ id, uid }) => id === named || uid === named);
  const [app, ...others] = found;
  const known = items.map(({ id, uid }) => `  ${id} ${escapeText(uid)}`).join("\n");
  if (app === undefined) {
    throw usageError(
      named === undefined
        ? "There is no app yet. Create one with `inlet apps install`."
        : `There is no app ${named}. Existing apps:\n${known}`,
    );
  }
  if (others.length === 0) return app;
  throw usageError(
    named === undefined
      ? `Choose an app with --app or INLET_APP:\n${known}`
      : `Several apps have the uid ${named}. Use the id instead:\n${known}`,
  );
}

/**
 * Finds the app that has an entity with an id or uid, such as a channel. If the id belongs to no single app, returns the only app.
 *
 * @throws CommandError if several apps have such an entity, or if the id is unknown and there are several apps
 */
export async function findAppOf(api: Api, id: string): Promise<App> {
  const { items } = await api.list<App>("/apps");
  const own = items.filter(({ spaceId }) => spaceId !== null);
  if (own.length < 2) return findApp(api, undefined);
  const { matches } = await api.get<{ readonly matches: readonly Match[] }>("/lookup", { id });
  const apps = own.filter((app) => matches.some(({ appId, kind }) => appId === app.id && kind !== "app"));
  const [app, ...others] = apps;
  if (app === undefined) return findApp(api, undefined);
  if (others.length === 0) return app;
  const known = apps.map((one) => `  ${one.id} ${escapeText(one.uid)}`).join("\n");
  throw usageError(`Several apps have ${id}. Choose one with --app or INLET_APP:\n${known}`);
}

/** Returns the uids of all apps by their ids. */
export async function listAppNames(api: Api): Promise<ReadonlyMap<string, string>> {
  const { items } = await api.list<App>("/apps");
  return new Map(items.map(({ id, uid }) => [id, uid]));
}

/**
 * Returns the columns of a table with the app's uid instead of its id in the column `app`. Keeps the ids if the apps cannot be listed, for
 * example because the API key may not list them or its rate limit is used up.
 */
export async function showAppUids<T>(
  { api, output }: { readonly api: Api; readonly output: Pick<Output, "isJson"> },
  rows: readonly T[],
  columns: readonly Column<T>[],
): Promise<readonly Column<T>[]> {
  if (output.isJson || rows.length === 0) return columns;
  const names = await listAppNames(api).catch((error: unknown) => {
    if (error instanceof CommandError) return undefined;
    throw error;
  });
  if (names === undefined) return columns;
  return columns.map((column) => {
    if (column.title !== "app") return column;
    return { ...column, value: (row: T) => names.get(String(column.value(row))) ?? column.value(row) };
  });
}

/** Finds the app that an argument names, or else the selected one. @throws CommandError */
export const getNamedApp = (
  { api, app }: { readonly api: Api; readonly app: () => Promise<App> },
  named: string | undefined,
): Promise<App> => (named === undefined ? app() : findApp(api, named));

export const getChannel = (api: Api, app: App, named: string): Promise<Channel> =>
  api.get<Channel>(`${formatPath("apps", app.id, "channels", named)}`);
