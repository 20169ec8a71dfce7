import { api } from "../../api/client.ts";
import { viewHref } from "../../kit/layout/links.ts";
import { hasPermission } from "../../session/session.ts";

/** Number of stored rows by outcome. `undefined` if the caller cannot list them. */
export interface Retained {
  readonly duplicate: number | undefined;
  readonly quarantined: number | undefined;
  readonly rejected: number | undefined;
}

/** Returns the URL of the list whose rows a figure counts. */
export const listHref = (
  view: "deliveries" | "quarantine",
  appId: string | undefined,
  query: Readonly<Record<string, string>>,
): string | undefined => viewHref(`/${view}`, {}, { app: appId, ...query });

/** Counts the rows stored since `fromMs` to which the figures lead. */
export async function countRetained(
  appId: string | undefined,
  fromMs: number,
  signal: AbortSignal,
): Promise<Retained> {
  const scope = { from: new Date(fromMs).toISOString(), limit: 1, ...(appId !== undefined && { appId }) };
  const deliveries = async (status: "duplicate" | "refused"): Promise<number> =>
    (await api.list("/deliveries", { query: { ...scope, status }, signal })).total;
  const quarantine = async (): Promise<number> =>
    (await api.list("/quarantine", { query: scope, signal })).total;
  const readsDeliveries = hasPermission("deliveries.read");
  const [duplicate, rejected, quarantined] = await Promise.all([
    readsDeliveries ? deliveries("duplicate") : undefined,
    readsDeliveries ? deliveries("refused") : undefined,
    hasPermission("apps.read") ? quarantine() : undefined,
  ]);
  return { duplicate, quarantined, rejected };
}
