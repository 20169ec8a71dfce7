import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, gotList, type Schemas } from "../../api/client.ts";
import { may } from "../../session/session.ts";

type App = Schemas["App"];

/** The uid of the app of each organization whose events are its problems. */
export const SYSTEM_APP = "inlet";

/** The newest that one page of a list holds; of more, the view of apps finds the others. */
const SHOWN = 200;

/** The apps of the caller, as the switcher shows them; undefined: not known yet. */
export const apps = signal<readonly App[] | undefined>(undefined);
const LAST = "inlet.app";
const lastId = signal<string | undefined>(sessionStorage.getItem(LAST) ?? undefined);

/** The app that the address names, else that of the last view, else the first one. */
export function useAppId(): string | undefined {
  const { path } = useLocation();
  const named = /^\/console\/apps\/([^/]+)/.exec(path)?.[1];
  useEffect(() => {
    if (named === undefined) return;
    lastId.value = named;
    sessionStorage.setItem(LAST, named);
  }, [named]);
  const known = apps.value;
  const last = lastId.value;
  // The organization's system app holds nothing but its problems.
  const first = known?.find(({ uid }) => uid !== SYSTEM_APP) ?? known?.[0];
  return named ?? (known?.some(({ id }) => id === last) ? last : first?.id);
}

/** To be called after one was installed or deleted. */
export async function reloadApps(): Promise<void> {
  if (!may("apps.read")) {
    apps.value = [];
    return;
  }
  const { rows } = await gotList(api.GET("/apps", { params: { query: { limit: SHOWN } } }));
  apps.value = rows;
}

/** Leads to the same view of another app. */
export function AppSwitcher() {
  const { path, route } = useLocation();
  const current = useAppId();
  const known = apps.value ?? [];
  if (known.length === 0) return null;
  const choose = (id: string): void => {
    const view = /^\/console\/apps\/[^/]+(\/[^/]+)?/.exec(path)?.[1] ?? "";
    lastId.value = id;
    sessionStorage.setItem(LAST, id);
    if (/^\/console\/apps\/[^/]+/.test(path)) route(`/console/apps/${id}${view}`);
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
