import { expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(() => startHookServer({}));

it("finds values by their names after another sender's names with backslashes", async () => {
  const sender = await server.open({}, [{ type: "any" }]);
  const definition = {
    type: "order",
    typePath: "$.kind",
    idPath: "$.order.id",
    when: { properties: { item: { properties: { state: { const: "paid" } }, required: ["state"] } } },
    schema: { required: ["kind", "state", "order"] },
  };
  const victim = await server.open({}, [definition]);
  const send = (id: string, body: string) =>
    server.send(id, { method: "POST", headers: { "content-type": "application/json" }, body });
  // Each name has the decoded length of the victim's name, and is the beginning of its escaped spelling.
  const poison = [
    String.raw`{"v":1,"\\u00":1}`,
    String.raw`{"v":1,"kind":1,"\\u007":1}`,
    String.raw`{"v":1,"kind":1,"state":1,"\\u006":1}`,
    String.raw`{"n":1,"\\u":1}`,
  ];
  for (const body of poison) expect((await send(sender.id, body)).status).toBe(200);
  const { status, text } = await send(
    victim.id,
    String.raw`{"v":1,"\u006bind":"order","\u0073tate":"paid","\u006frder":{"n":1,"\u0069d":"o1"}}`,
  );
  expect([status, JSON.parse(text)]).toMatchObject([
    200,
    { events: [{ type: "order", id: "o1", status: "published" }] },
  ]);
});
