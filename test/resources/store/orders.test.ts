import { beforeAll, describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let artifactId: string;
let storeId: string;
let pricingPlanId: string;
const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];

const order = (body: object = {}) => buyer.post("/stores/orders", { artifactId, pricingPlanId, ...body });
const step = (id: string, name: string, call: Caller = seller, body: object = {}) =>
  call("POST", `/stores/orders/${id}/${name}`, body);

const api = opened(createTestApi);
/** Caller of the organization that owns the store. */
const seller = opened(() => api.call);
const buyer = opened(async () => api.as(await api.createForeignKey()));
const third = opened(async () => api.as(await api.createForeignKey()));
beforeAll(async () => {
  storeId = (await seller.post("/stores", { name: "Store", isPublic: true, commissionRate: 12.5 })).id;
  const categoryId = (await seller.post("/stores/categories", { storeId, name: "All" })).id;
  const blueprintId = (await seller.post("/blueprints", { title: "x", channels })).id;
  const content = { kind: "blueprint", title: "x", blueprintId, storeId, categoryId };
  artifactId = (await seller.post("/stores/artifacts", content)).id;
  const plan = { name: "Standard", price: "19.90", currency: "EUR" };
  pricingPlanId = (await seller.post(`/stores/artifacts/${artifactId}/pricing-plans`, plan)).id;
});

it("an organization can find another organization's public store, order, pay, install, review, and get a refund", async () => {
  const [store] = (await buyer("GET", "/stores?isPublic=true")).body;
  const [category] = (await buyer("GET", `/stores/categories?storeId=${store.id}`)).body;
  const [artifact] = (await buyer("GET", `/stores/artifacts?categoryId=${category.id}`)).body;
  const [plan] = artifact.pricingPlans;
  expect([artifact.id, plan]).toMatchObject([
    artifactId,
    { id: pricingPlanId, price: "19.90", currency: "EUR" },
  ]);

  const install = () => buyer("POST", "/apps/install", { artifactId });
  const unpaid = await install();
  expect([unpaid.status, unpaid.body.code]).toEqual([409, "conflict"]);
  const ordered = await order({ tax: "3.781" });
  expect(ordered).toEqual({
    id: expect.stringMatching(/^ord_/),
    orderNumber: expect.any(String),
    artifactId,
    storeId,
    pricingPlanId,
    buyerId: expect.stringMatching(/^acc_/),
    transactionId: null,
    licenseKey: null,
    paymentMethod: null,
    currency: "EUR",
    subtotal: "19.90",
    tax: "3.781",
    total: "23.681",
    commission: "2.4875",
    status: "pending",
    paidAt: null,
    expiresAt: null,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
  });
  const review = await buyer.post("/stores/reviews", { artifactId, rating: 5 });
  expect(review.isVerified).toBe(false);
  expect((await install()).status).toBe(409);

  const paid = (await step(ordered.id, "pay", seller, { transactionId: "tx-1", paymentMethod: "card" })).body;
  expect(paid).toMatchObject({
    status: "paid",
    transactionId: "tx-1",
    paymentMethod: "card",
    paidAt: expect.any(String),
    licenseKey: null,
    expiresAt: null,
  });
  const bought = (await buyer("GET", `/stores/orders/${ordered.id}`)).body;
  expect(bought).toEqual({ ...paid, licenseKey: expect.stringMatching(/^[0-9A-Z]{8}(?:-[0-9A-Z]{8}){3}$/) });
  expect((await seller("GET", "/stores/orders")).body).toEqual([paid]);
  expect((await buyer("GET", `/stores/orders?storeId=${storeId}&status=paid`)).body).toEqual([bought]);
  expect((await third("GET", "/stores/orders")).body).toEqual([]);
  expect((await third("POST", "/apps/install", { artifactId })).status).toBe(409);

  const app = (await install()).body;
  expect(app).toMatchObject({ title: "x", channels: [{ uid: "in", kind: "webhook" }] });
  expect((await buyer("POST", `/apps/${app.id}/upgrade`, {})).body.kept).toEqual([]);
  expect((await buyer("GET", `/blueprints/${app.blueprintId}`)).status).toBe(404);
  expect((await buyer("POST", "/apps/install", { blueprintId: app.blueprintId })).status).toBe(404);
  expect((await third("GET", `/stores/reviews/${review.id}`)).body.isVerified).toBe(true);

  await step(ordered.id, "refund");
  expect((await install()).status).toBe(409);
  expect((await buyer("POST", `/apps/${app.id}/upgrade`, {})).status).toBe(409);
  expect((await third("GET", `/stores/reviews/${review.id}`)).body.isVerified).toBe(false);
  expect((await buyer("DELETE", `/stores/reviews/${review.id}`)).status).toBe(200);
});

describe("an order", () => {
  it("changes its status only from pending to paid, or from pending or paid to a final status", async () => {
    const steps = ["pay", "refund", "expire", "cancel"];
    const reached = async (...taken: string[]) => {
      const statusOf = async (id: string) => (await seller.get(`/stores/orders/${id}`)).status;
      const there = async (): Promise<string> => {
        const { id } = await order();
        for (const name of taken) await step(id, name);
        return id;
      };
      let id = await there();
      const status = await statusOf(id);
      const refused = [];
      for (const name of steps) {
        if ((await step(id, name)).status === 409) {
          refused.push(name);
          expect(await statusOf(id)).toBe(status);
        } else id = await there();
      }
      return [status, refused];
    };
    expect(await reached()).toEqual(["pending", ["refund"]]);
    expect(await reached("pay")).toEqual(["paid", ["pay"]]);
    expect(await reached("pay", "refund")).toEqual(["refunded", steps]);
    expect(await reached("pay", "expire")).toEqual(["expired", steps]);
    expect(await reached("cancel")).toEqual(["canceled", steps]);
    expect((await seller("GET", "/stores/orders?status=other")).status).toBe(400);
  });

  it("is paid once if several payments are reported concurrently", async () => {
    const { id } = await order();
    const answers = await Promise.all([1, 2, 3].map(() => step(id, "pay")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it("is paid only if the reported amount equals its total", async () => {
    const { id } = await order({ tax: "0.1" });
    expect((await step(id, "pay", seller, { total: "19.90" })).status).toBe(409);
    expect((await seller("PUT", `/stores/orders/${id}`, { tax: "0" })).body.total).toBe("19.90");
    expect((await step(id, "pay", seller, { total: "19.9" })).body.status).toBe("paid");
    expect((await seller("PUT", `/stores/orders/${id}`, { tax: "1" })).status).toBe(409);
  });

  it("can be paid and refunded only by the store, deleted only by the buyer, and canceled by either", async () => {
    const { id } = await order();
    const path = `/stores/orders/${id}`;
    for (const name of ["pay", "refund", "expire"]) {
      const refused = await step(id, name, buyer);
      expect([refused.status, refused.body.code]).toEqual([403, "permission_denied"]);
    }
    expect((await buyer("PUT", path, { tax: "0" })).status).toBe(403);
    expect((await seller("DELETE", path)).status).toBe(403);
    expect((await step(id, "cancel", buyer)).body.status).toBe("canceled");
    expect((await buyer("DELETE", path)).body).toEqual({ id });
    const paid = await order();
    await step(paid.id, "pay");
    expect((await buyer("DELETE", `/stores/orders/${paid.id}`)).status).toBe(409);
  });

  it("keeps its amounts when plan or store change, and its plan and artifact cannot be deleted", async () => {
    const made = await order();
    const plan = `/stores/artifacts/${artifactId}/pricing-plans/${pricingPlanId}`;
    await seller("PUT", plan, { price: "5", interval: "month" });
    await seller("PUT", `/stores/${storeId}`, { id: storeId, commissionRate: 50 });
    expect((await buyer("GET", `/stores/orders/${made.id}`)).body).toEqual(made);
    expect((await order()).commission).toBe("2.5");
    expect((await step(made.id, "pay")).body.expiresAt).toBeNull();
    await seller("PUT", plan, { price: "19.90", interval: null });
    await seller("PUT", `/stores/${storeId}`, { id: storeId, commissionRate: 12.5 });
    for (const path of [plan, `/stores/artifacts/${artifactId}`])
      expect((await seller("DELETE", path)).status).toBe(409);
    expect(
      (await seller("PUT", `/stores/artifacts/${artifactId}`, { storeId: null, categoryId: null })).status,
    ).toBe(409);
  });

  it("expires after the interval of its pricing plan, and allows no installation after that", async () => {
    const blueprintId = (await seller.post("/blueprints", { title: "monthly", channels })).id;
    const artifact = await seller.post("/stores/artifacts", {
      kind: "blueprint",
      title: "m",
      blueprintId,
      storeId,
    });
    const plan = await seller.post(`/stores/artifacts/${artifact.id}/pricing-plans`, {
      name: "Monthly",
      price: "1",
      currency: "JPY",
      interval: "month",
    });
    const { id } = await order({ artifactId: artifact.id, pricingPlanId: plan.id });
    const { paidAt, expiresAt } = (await step(id, "pay")).body;
    const days = (Date.parse(expiresAt) - Date.parse(paidAt)) / 86_400_000;
    expect(days).toBeGreaterThanOrEqual(28);
    expect(days).toBeLessThanOrEqual(31);
    expect((await buyer("POST", "/apps/install", { artifactId: artifact.id })).status).toBe(200);
    const past = new Date(Date.now() - 1);
    await api.database.db.updateTable("storeOrders").set({ expiresAt: past }).where("id", "=", id).execute();
    expect((await buyer("POST", "/apps/install", { artifactId: artifact.id })).status).toBe(409);
  });

  it("is rejected with a pricing plan of another artifact, an invalid tax, or an artifact that is not published", async () => {
    const other = await seller.post("/stores/artifacts", { kind: "form", title: "f", storeId });
    const refused = (body: object) =>
      buyer.expectRejection("POST", "/stores/orders", { artifactId, pricingPlanId, ...body });
    expect((await refused({ artifactId: other.id })).status).toBe(404);
    expect((await refused({ pricingPlanId: "plan_x" })).status).toBe(404);
    for (const tax of ["-1", "1e3", "01", "1.00000", "1,5"])
      expect(await refused({ tax })).toMatchObject({ status: 400, paths: ["tax"] });
    const draft = await seller.post("/stores/artifacts", { kind: "form", title: "f" });
    const plan = { name: "P", price: "1", currency: "EUR" };
    const { id } = await seller.post(`/stores/artifacts/${draft.id}/pricing-plans`, plan);
    const unpublished = { artifactId: draft.id, pricingPlanId: id };
    expect(await seller.expectRejection("POST", "/stores/orders", unpublished)).toMatchObject({
      status: 409,
    });
    expect(await refused(unpublished)).toMatchObject({ status: 404 });
  });
});

describe("a pricing plan", () => {
  it("has a price, a currency, and a name that is unique among the plans of its artifact", async () => {
    const { id } = await seller.post("/stores/artifacts", { kind: "form", title: "f" });
    const path = `/stores/artifacts/${id}/pricing-plans`;
    const plan = await seller.post(path, { name: "A", price: "0.5000", currency: "EUR" });
    expect(plan).toMatchObject({ artifactId: id, price: "0.5000", currency: "EUR", interval: null });
    for (const [field, value] of [
      ...["1,5", "-1", "01", "1e3", "1.00000", "1234567890123"].map((price) => ["price", price]),
      ...["eur", "XYY", ""].map((currency) => ["currency", currency]),
      ["interval", "week"],
    ] as const) {
      const body = { name: "B", price: "1", currency: "EUR", [String(field)]: value };
      expect(await seller.expectRejection("POST", path, body)).toMatchObject({ status: 400, paths: [field] });
    }
    const twice = await Promise.all(
      [1, 2].map(() => seller("POST", path, { name: "B", price: "1", currency: "EUR" })),
    );
    expect(twice.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await seller("DELETE", `${path}/${plan.id}`)).body).toEqual({ id: plan.id });
  });

  it("with a price of zero lets every organization install the artifact, as does an artifact without plans", async () => {
    const blueprintId = (await seller.post("/blueprints", { title: "free", channels })).id;
    const { id } = await seller.post("/stores/artifacts", {
      kind: "blueprint",
      title: "f",
      blueprintId,
      storeId,
    });
    const path = `/stores/artifacts/${id}/pricing-plans`;
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await seller.post(path, { name: "Pro", price: "9", currency: "EUR" });
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(409);
    expect((await seller("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await seller.post(path, { name: "Free", price: "0.00", currency: "EUR" });
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await seller("POST", `/stores/artifacts/${id}/reject`, {});
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(404);
  });
});
