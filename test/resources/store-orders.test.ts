import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, visible } from "../support/isolated.ts";

let api: TestApi;
/** Has the store; `api.call` is its caller too. */
let seller: Call;
let buyer: Call;
let third: Call;
let artifactId: string;
let storeId: string;
let pricingPlanId: string;
const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];

const make = async (path: string, body: object = {}, call: Call = seller) => {
  const answer = await call("POST", path, body);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const order = (body: object = {}, call: Call = buyer) =>
  make("/stores/orders", { artifactId, pricingPlanId, ...body }, call);
const step = (id: string, name: string, call: Call = seller, body: object = {}) =>
  call("POST", `/stores/orders/${id}/${name}`, body);

beforeAll(async () => {
  api = await createTestApi();
  seller = api.call;
  buyer = api.as(await api.strangerKey());
  third = api.as(await api.strangerKey());
  storeId = (await make("/stores", { name: "Store", isPublic: true, commissionRate: 12.5 })).id;
  const categoryId = (await make("/stores/categories", { storeId, name: "All" })).id;
  const blueprintId = (await make("/blueprints", { title: "x", channels })).id;
  const content = { kind: "blueprint", title: "x", blueprintId, storeId, categoryId };
  artifactId = (await make("/stores/artifacts", content)).id;
  const plan = { name: "Standard", price: "19.90", currency: "EUR" };
  pricingPlanId = (await make(`/stores/artifacts/${artifactId}/pricing-plans`, plan)).id;
});
afterAll(() => api[Symbol.asyncDispose]());

it("leads another organization from a public store to an app and a review", async () => {
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
    ...{ id: expect.stringMatching(/^ord_/), orderNumber: expect.any(String) },
    ...{ artifactId, storeId, pricingPlanId, buyerId: expect.stringMatching(/^acc_/) },
    ...{ transactionId: null, licenseKey: null, paymentMethod: null, currency: "EUR" },
    ...{ subtotal: "19.90", tax: "3.781", total: "23.681", commission: "2.4875", status: "pending" },
    ...{ paidAt: null, expiresAt: null, createdAt: expect.any(String), updatedAt: expect.any(String) },
  });
  const review = await make("/stores/reviews", { artifactId, rating: 5 }, buyer);
  expect(review.isVerified).toBe(false);
  expect((await install()).status).toBe(409);

  const paid = (await step(ordered.id, "pay", seller, { transactionId: "tx-1", paymentMethod: "card" })).body;
  expect(paid).toMatchObject({
    ...{ status: "paid", transactionId: "tx-1", paymentMethod: "card", paidAt: expect.any(String) },
    ...{ licenseKey: null, expiresAt: null },
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
  it("goes from pending to paid to an end, and no other way", async () => {
    const steps = ["pay", "refund", "expire", "cancel"];
    const reached = async (...taken: string[]) => {
      const { id } = await order();
      for (const name of taken) await step(id, name);
      const refused = [];
      for (const name of steps) {
        const tried = await order();
        for (const one of taken) await step(tried.id, one);
        if ((await step(tried.id, name)).status === 409) refused.push(name);
      }
      return [(await seller("GET", `/stores/orders/${id}`)).body.status, refused];
    };
    expect(await reached()).toEqual(["pending", ["refund"]]);
    expect(await reached("pay")).toEqual(["paid", ["pay"]]);
    expect(await reached("pay", "refund")).toEqual(["refunded", steps]);
    expect(await reached("pay", "expire")).toEqual(["expired", steps]);
    expect(await reached("cancel")).toEqual(["canceled", steps]);
    expect((await seller("GET", "/stores/orders?status=other")).status).toBe(400);
  });

  it("is paid once, whoever is told of the payment twice at the same time", async () => {
    const { id } = await order();
    const answers = await Promise.all([1, 2, 3].map(() => step(id, "pay")));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it("is paid at the total that was seen", async () => {
    const { id } = await order({ tax: "0.1" });
    expect((await step(id, "pay", seller, { total: "19.90" })).status).toBe(409);
    expect((await seller("PUT", `/stores/orders/${id}`, { tax: "0" })).body.total).toBe("19.90");
    expect((await step(id, "pay", seller, { total: "19.9" })).body.status).toBe("paid");
    expect((await seller("PUT", `/stores/orders/${id}`, { tax: "1" })).status).toBe(409);
  });

  it("is the store's to be paid, the buyer's to be deleted, and nobody else's", async () => {
    const { id } = await order();
    const path = `/stores/orders/${id}`;
    for (const name of ["pay", "refund", "expire"]) {
      const refused = await step(id, name, buyer);
      expect([refused.status, refused.body.code]).toEqual([403, "permission_denied"]);
    }
    expect((await buyer("PUT", path, { tax: "0" })).status).toBe(403);
    expect((await seller("DELETE", path)).status).toBe(403);
    await expectHidden(third, "/stores/orders", id, { tax: "0" });
    for (const name of ["pay", "refund", "expire", "cancel"])
      expect((await step(id, name, third)).status).toBe(404);
    expect((await step(id, "cancel", buyer)).body.status).toBe("canceled");
    expect((await buyer("DELETE", path)).body).toEqual({ id });
    const paid = await order();
    await step(paid.id, "pay");
    expect((await buyer("DELETE", `/stores/orders/${paid.id}`)).status).toBe(409);
  });

  it("stays as it was made when plan, store and artifact change", async () => {
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

  it("ends with the interval of its plan, and what it opened with it", async () => {
    const blueprintId = (await make("/blueprints", { title: "monthly", channels })).id;
    const artifact = await make("/stores/artifacts", { kind: "blueprint", title: "m", blueprintId, storeId });
    const plan = await make(`/stores/artifacts/${artifact.id}/pricing-plans`, {
      ...{ name: "Monthly", price: "1", currency: "JPY", interval: "month" },
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

  it("is of a plan of its artifact, and of one that is published", async () => {
    const other = await make("/stores/artifacts", { kind: "form", title: "f", storeId });
    const refused = async (body: object) =>
      visible(await buyer("POST", "/stores/orders", { artifactId, pricingPlanId, ...body }));
    expect((await refused({ artifactId: other.id })).status).toBe(404);
    expect((await refused({ pricingPlanId: "plan_x" })).status).toBe(404);
    for (const tax of ["-1", "1e3", "01", "1.00000", "1,5", 1])
      expect((await refused({ tax })).body.details).toMatchObject([{ path: "tax" }]);
    const draft = await make("/stores/artifacts", { kind: "form", title: "f" });
    const plan = { name: "P", price: "1", currency: "EUR" };
    const { id } = await make(`/stores/artifacts/${draft.id}/pricing-plans`, plan);
    const unpublished = { artifactId: draft.id, pricingPlanId: id };
    expect((await seller("POST", "/stores/orders", unpublished)).status).toBe(409);
    expect((await refused(unpublished)).status).toBe(404);
  });
});

describe("a pricing plan", () => {
  it("has an amount and a currency, and a name that is its own for its artifact", async () => {
    const { id } = await make("/stores/artifacts", { kind: "form", title: "f" });
    const path = `/stores/artifacts/${id}/pricing-plans`;
    const plan = await make(path, { name: "A", price: "0.5000", currency: "EUR" });
    expect(plan).toMatchObject({ artifactId: id, price: "0.5000", currency: "EUR", interval: null });
    for (const [field, value] of [
      ...["1,5", "-1", "01", "1e3", "1.00000", "1234567890123", 1].map((price) => ["price", price]),
      ...["eur", "XYY", ""].map((currency) => ["currency", currency]),
      ["interval", "week"],
    ] as const) {
      const body = { name: "B", price: "1", currency: "EUR", [String(field)]: value };
      expect((await seller("POST", path, body)).body.details).toMatchObject([{ path: field }]);
    }
    const twice = await Promise.all(
      [1, 2].map(() => seller("POST", path, { name: "B", price: "1", currency: "EUR" })),
    );
    expect(twice.map(({ status }) => status).sort()).toEqual([200, 409]);
    await expectHidden(buyer, path, plan.id, { price: "0" });
    expect((await seller("DELETE", `${path}/${plan.id}`)).body).toEqual({ id: plan.id });
  });

  it("that costs nothing lets everybody install", async () => {
    const blueprintId = (await make("/blueprints", { title: "free", channels })).id;
    const { id } = await make("/stores/artifacts", { kind: "blueprint", title: "f", blueprintId, storeId });
    const path = `/stores/artifacts/${id}/pricing-plans`;
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await make(path, { name: "Pro", price: "9", currency: "EUR" });
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(409);
    expect((await seller("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await make(path, { name: "Free", price: "0.00", currency: "EUR" });
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(200);
    await seller("POST", `/stores/artifacts/${id}/reject`, {});
    expect((await third("POST", "/apps/install", { artifactId: id })).status).toBe(404);
  });
});
