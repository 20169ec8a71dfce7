import { wrongUse } from "../exit.ts";
import { escapeText } from "../output/escape.ts";
import type { Api } from "./api.ts";
import { pathOf } from "./api.ts";
import type { App, Channel } from "./entities.ts";

/** The app that is meant: by its id or uid, or the only one that there is. @throws CommandError */
export async function findApp(api: Api, named: string | undefined): Promise<App> {
  const { items } = await api.list<App>("/apps");
  // The system app is Inlet's own.
  const own = items.filter(({ spaceId }) => spaceId !== null);
  const found = named === undefined ? own : items.filter(({ id, uid }) => id === named || uid === named);
  const [app, ...others] = found;
  const known = items.map(({ id, uid }) => `  ${id} ${escapeText(uid)}`).join("\n");
  if (app === undefined) {
    throw wrongUse(
      named === undefined ? "There is no app yet." : `There is no app ${named}. There are:\n${known}`,
    );
  }
  if (others.length === 0) return app;
  throw wrongUse(
    named === undefined
      ? `Say which app is meant, by --app or INLET_APP:\n${known}`
      : `Several apps are called ${named}; name one by its id:\n${known}`,
  );
}

/** A channel of the app by its id or uid. @throws CommandError */
export const getChannel = (api: Api, app: App, named: string): Promise<Channel> =>
  api.get<Channel>(`${pathOf("apps", app.id, "channels", named)}`);
