// Receives events as signed requests. Any status from 200 to 299 acknowledges an event, and Inlet retries after all others.
import express from "express";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.HANDLER_SECRET ?? "");
const app = express();

// The signature covers the received bytes, so the body must not be parsed before.
app.post("/events", express.text({ type: "*/*" }), (request, response) => {
  let data: unknown;
  try {
    data = webhook.verify(request.body, request.headers as Record<string, string>);
  } catch {
    return response.status(401).send("the signature is wrong");
  }
  // The id is the same at each attempt, so that you can skip events that you have already handled.
  console.log(request.header("ce-type"), request.header("webhook-id"), JSON.stringify(data));
  return response.status(204).end();
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}/events`);
});
