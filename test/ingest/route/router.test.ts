import { expect, it } from "vitest";
import { LateValidationError } from "../../../src/ingest/route/deliver-group.ts";
import { createRouter } from "../../../src/ingest/route/router.ts";
import { routeItems } from "../../../src/normalize/route-items.ts";
import { deliveryOf } from "../../normalize/support.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

const spine = opened(startTestSpine);
const TOKEN = { "x-token": "the token of the intake" };

it("a delivery that cannot be validated in time is held, and later ones of its key wait behind it", async () => {
  const { call } = spine.api;
  const channels = [{ uid: "main", kind: "webhook", events: [{ type: "e", idPath: "$.id" }] }];
  const { id: blueprintId } = await call.post("/blueprints", { title: "Intake", channels });
  const verification = { scheme: "token", name: "x-token" };
  const secrets = [{ value: TOKEN["x-token"] }];
  const settings = { channel: "main", routeBy: ["$.team"], config: { verification, secrets } };
  const { url } = await call.put(`/blueprints/${blueprintId}/intake`, settings);
  const app = await call.post("/apps/install", { blueprintId });
  await call.put(`/blueprints/${blueprintId}/installs/${app.id}/route-keys`, { keys: ["A"] });
  const address = url.slice(url.lastIndexOf("/") + 1);
  const intake = await spine.path.rules.find(address);
  if (intake?.routes === undefined) throw new Error("there is no intake");
  const { quarantine, findInstall, routeTargets } = spine.path;
  const route = createRouter({
    routeItems: ({ rules }, { paths }, delivery) => routeItems(rules, paths, delivery),
    findInstall,
    deliverGroup: () => Promise.reject(new LateValidationError()),
    markHeld: ({ identity }, key) => routeTargets.markHeld({ number: identity.number, blueprintId }, key),
    quarantine,
    isReplay: async () => false,
    metrics: spine.metrics,
    countHeld: () => {},
    newDeliveryId: () => "dl_late",
  });
  const limits = { checkVerified: () => undefined, countItems: () => {} };
  const result = await route(intake, intake.routes, deliveryOf({ id: "1", team: "A" }), limits);
  expect(result).toMatchObject({ kind: "routed", outcome: { received: 1, published: 0, quarantined: 1 } });
  expect(await spine.send(address, { id: "2", team: "A" }, TOKEN)).toMatchObject({ quarantined: 1 });
  expect(await quarantine.listHeld(intake.identity, "A", 10)).toHaveLength(2);
  const items = await call.get(`/blueprints/${blueprintId}/quarantine`);
  const reasons = items.map(({ reason }: { readonly reason: string }) => reason);
  expect(reasons.sort()).toEqual(["no_install", "over_limit"]);
  for (const { id } of items) {
    const { status, body } = await call("GET", `/blueprints/${blueprintId}/quarantine/${id}`);
    expect([status, body.message]).toEqual([409, expect.stringContaining("may belong to an install")]);
  }
});
