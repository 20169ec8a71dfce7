// Receives events as signed requests. Any status from 200 to 299 acknowledges an event, and Inlet retries after all others.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.HANDLER_SECRET ?? "");
const app = new Hono();

app.post("/events", async (c) => {
  let data: unknown;
  try {
    data = webhook.verify(await c.req.text(), c.req.header());
  } catch {
    return c.text("the signature is wrong", 401);
  }
  // The id is the same at each attempt, so that you can skip events that you have already handled.
  console.log(c.req.header("ce-type"), c.req.header("webhook-id"), JSON.stringify(data));
  return c.body(null, 204);
});

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: "127.0.0.1" }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}/events`);
});
