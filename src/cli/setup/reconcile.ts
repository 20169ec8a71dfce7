import type { Trx } from "../../data/database.ts";
import type { Finding } from "../../lib/errors.ts";
import { reconcileApp } from "./apps.ts";
import { reconcileBlueprint } from "./blueprints.ts";
import { type ChannelDeps, reconcileChannel } from "./channels.ts";
import type { WantedApp, WantedOrganization } from "./check.ts";
import { reconcileOrganization, reconcileSpace } from "./organizations.ts";
import { type Organization, type Report, SetUpConflict, type Step } from "./plan.ts";
import { findUnmanaged } from "./unmanaged.ts";

/** Runs a function in a database transaction. When only planning, the transaction is rolled back. */
export type InTransaction = <T>(run: (trx: Trx) => Promise<T>) => Promise<T>;

/**
 * Shows the first API key of a new organization, inside the transaction that creates the key. If this rejects, the key is not
 * created.
 */
export type TellKey = (organization: string, token: string) => Promise<void>;

/**
 * Creates or updates the declared objects in order, each in its own transaction. A new app shares a transaction with its channels.
 * A conflict on one object is reported, but does not stop the rest.
 */
export async function reconcile(
  deps: ChannelDeps & { readonly tellKey: TellKey },
  wanted: readonly WantedOrganization[],
  within: InTransaction,
): Promise<Report> {
  const steps: Step[] = [];
  const conflicts: Finding[] = [];
  const attempt = async <T>(object: string, run: (trx: Trx) => Promise<T>): Promise<T | undefined> => {
    try {
      return await within(run);
    } catch (error) {
      if (!(error instanceof SetUpConflict)) throw error;
      conflicts.push({ path: object, message: error.message });
      return undefined;
    }
  };
  const note = (step: Step | undefined): void => {
    if (step) steps.push(step);
  };

  const bringApp = async (organization: Organization, app: WantedApp): Promise<void> => {
    const called = `${app.uid} in ${organization.name}/${app.space}`;
    const place = { organization, called };
    const brought = await attempt(`app ${called}`, (trx) => reconcileApp(deps, trx, place, app));
    steps.push(...(brought?.steps ?? []));
    if (!brought || brought.isNew) return;
    const declared = app.channels.map(({ uid }) => uid);
    const found = { id: brought.id, organizationId: organization.id, called, declared };
    for (const channel of app.channels) {
      const object = `channel ${channel.uid} of ${called}`;
      note(await attempt(object, (trx) => reconcileChannel(deps, trx, found, channel)));
    }
  };

  for (const one of wanted) {
    const { name } = one;
    const brought = await attempt(`organization ${name}`, async (trx) => {
      const found = await reconcileOrganization(trx, one, deps.nowMs);
      if (found.token !== undefined) await deps.tellKey(name, found.token);
      return found;
    });
    if (!brought) continue;
    note(brought.step);
    const organization = { id: brought.id, name };
    for (const space of one.spaces) {
      const made = brought.token !== undefined && space === one.spaces[0];
      const object = `space ${space} in ${name}`;
      const step = await attempt(object, (trx) => reconcileSpace(trx, organization, space, deps.nowMs));
      note(step && made ? { ...step, action: "create" } : step);
    }
    for (const blueprint of one.blueprints) {
      const object = `blueprint ${blueprint.uid} in ${name}`;
      note(await attempt(object, (trx) => reconcileBlueprint(trx, organization, blueprint, deps.nowMs)));
    }
    for (const app of one.apps) await bringApp(organization, app);
    steps.push(...(await within((trx) => findUnmanaged(trx, organization, one))));
  }
  return { steps, conflicts };
}
