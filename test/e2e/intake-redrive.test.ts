import { beforeAll, describe, expect, it } from "vitest";
import type { OpenApi } from "../support/documented.ts";
import { fieldsOn } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";
import {
  createIntake,
  INTAKE_CHANNEL,
  type Install,
  type IntakeFixture,
  type Tenant,
} from "../support/intakes.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway();

const idsOf = (install: Install) => fieldsOn(gateway.stores, install.topic, "id");
const redrivePath = ({ blueprintId }: IntakeFixture, id?: string): string =>
  `/blueprints/${blueprintId}/quarantine/${id === undefined ? "" : `${id}/`}redrive`;
const listHeld = ({ blueprintId }: IntakeFixture, reason: string): Promise<OpenApi[]> =>
  gateway.api<OpenApi[]>("GET", `/blueprints/${blueprintId}/quarantine?reason=${reason}`);
const redriveAll = (intake: IntakeFixture, reason: string): Promise<OpenApi[]> =>
  gateway.api<OpenApi[]>("POST", redrivePath(intake), { reason });

describe("a redrive of the items that an intake holds", () => {
  let intake: IntakeFixture;
  let acme: Tenant;
  let install: Install;

  async function setRouteBy(path: string, probe: object): Promise<void> {
    await gateway.api("PUT", `/blueprints/${intake.blueprintId}/intake`, { routeBy: [path] });
    let n = 0;
    await until(async () => {
      const id = `probe${path}${n++}`;
      return (await intake.send({ events: [{ id, ...probe }] })).body.published === 1;
    });
  }

  beforeAll(async () => {
    intake = await createIntake(gateway, { routeBy: ["$.group"] });
    acme = await intake.addOrganization("Acme");
    install = await acme.install();
    await intake.setKeys(install, ["A"]);
  });

  it("routes them by the current `routeBy`, publishes each once and reports counts only", async () => {
    const events = [
      { id: "1", team: "A", text: "private" },
      { id: "2", team: "unknown" },
      { id: "3" },
      { id: "4", team: "A" },
    ];
    expect((await intake.send({ events })).body).toMatchObject({ published: 0, quarantined: 4 });
    await setRouteBy("$.team", { team: "A" });
    const [item] = await listHeld(intake, "no_route");
    const result = await gateway.api<OpenApi>("POST", redrivePath(intake, item?.id), {});
    expect(result).toMatchObject({ id: item?.id, status: "kept", routed: 2, held: 2 });
    expect(result.quarantine.map(({ reason }: OpenApi) => reason).sort()).toEqual(["no_install", "no_route"]);
    expect(JSON.stringify(result)).not.toContain("private");
    await until(async () => (await idsOf(install)).includes("4"));
    const published = (await idsOf(install)).filter((id) => !id.startsWith("probe"));
    expect(published).toEqual(["1", "4"]);

    const [rest] = await redriveAll(intake, "no_route");
    expect(rest).toMatchObject({ status: "kept", routed: 0, held: 1, quarantine: [{ id: rest?.id }] });
    const [waiting] = await redriveAll(intake, "no_install");
    expect(waiting).toMatchObject({
      status: "kept",
      quarantine: [{ id: waiting?.id, reason: "no_install" }],
    });
    expect((await intake.send({ events: [events[0]] })).body).toMatchObject({ duplicates: 1 });
    const other = await acme.install();
    await intake.setKeys(other, ["unknown"]);
    await until(async () => (await idsOf(other)).includes("2"));
  });

  it("gives items another route key, and publishes them before later items of that key", async () => {
    await setRouteBy("$.group", { group: "A" });
    await intake.send({ events: [{ id: "o1", team: "late", group: "wrong" }] });
    await intake.send({ events: [{ id: "o2", team: "late" }] });
    await setRouteBy("$.team", { team: "A" });
    await intake.send({ events: [{ id: "o3", team: "late" }] });
    const [first] = await redriveAll(intake, "no_install");
    expect(first).toMatchObject({ status: "kept", routed: 0, held: 1 });
    const held = await listHeld(intake, "no_install");
    expect(held.every(({ detail }) => detail.includes('"late"'))).toBe(true);
    await redriveAll(intake, "no_route");
    const late = await acme.install();
    await intake.setKeys(late, ["late"]);
    await until(async () => (await idsOf(late)).length >= 3);
    expect(await idsOf(late)).toEqual(["o1", "o2", "o3"]);
    await until(async () => (await listHeld(intake, "no_install")).length === 0);
  });

  it("is rejected for items that can never be routed, and for blueprints of other organizations", async () => {
    const path = `/blueprints/${intake.blueprintId}/intake`;
    await gateway.api("POST", `${path}/pause`);
    await until(async () => {
      await intake.send({ events: [{ id: "p", team: "A" }] });
      return (await listHeld(intake, "paused")).length > 0;
    });
    const [paused] = await redriveAll(intake, "paused");
    expect(paused).toMatchObject({ status: "refused", message: expect.stringContaining("resumed") });
    await expect(gateway.api("POST", redrivePath(intake, paused?.id), {})).rejects.toThrow("409");
    await expect(acme.call("POST", redrivePath(intake), { reason: "no_route" })).rejects.toThrow("404");
    await expect(gateway.api("POST", redrivePath(intake), {})).rejects.toThrow("reason");
    await gateway.api("POST", `${path}/resume`);
  });
});

it("a redrive of a replayed delivery routes it by its latest route key", async () => {
  const verification = { ...INTAKE_CHANNEL.config.verification, bindDedupe: "signedBytes" };
  const intake = await createIntake(gateway, {
    routeBy: ["$headers['x-team']"],
    trustUnsigned: true,
    config: { verification },
  });
  const tenant = await intake.addOrganization("Globex");
  const [first, second] = [await tenant.install(), await tenant.install()];
  await intake.setKeys(first, ["A"]);
  await intake.setKeys(second, ["B"]);
  const send = (team: string) => intake.send({ events: [{ id: "1" }] }, { "x-team": team });
  expect((await send("A")).body).toMatchObject({ published: 1 });
  expect((await send("B")).body).toMatchObject({ published: 0, quarantined: 1 });
  expect((await send("C")).body).toMatchObject({ published: 0, quarantined: 1 });
  const items = await listHeld(intake, "replayed");
  expect(items).toHaveLength(2);
  const results = await redriveAll(intake, "replayed");
  expect(results.map(({ status, routed }) => [status, routed])).toEqual([
    ["released", 1],
    ["kept", 0],
  ]);
  // The data of an install stays hidden although no install has the latest route key.
  const [kept] = await listHeld(intake, "replayed");
  expect(kept?.id).toBe(items[1]?.id);
  const path = `/blueprints/${intake.blueprintId}/quarantine/${kept?.id}`;
  await expect(gateway.api("GET", path)).rejects.toThrow("may belong to an install");
  await until(async () => (await idsOf(second)).length === 1);
  expect(await idsOf(first)).toEqual(["1"]);
});
