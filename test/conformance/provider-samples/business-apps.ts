import { startAirtable } from "../../support/providers/airtable.ts";
import { startCalendly } from "../../support/providers/calendly.ts";
import { startHubSpot } from "../../support/providers/hubspot.ts";
import { startShopify } from "../../support/providers/shopify.ts";
import { startStripe } from "../../support/providers/stripe.ts";
import { startTypeform } from "../../support/providers/typeform.ts";
import { OUR_SECRET, type ProviderSamples } from "../provider-emulator.suite.ts";

const DAY_MS = 86_400_000;

const CALENDLY_ORGANIZATION = "https://api.calendly.com/organizations/ours";

export const BUSINESS_APPS: readonly ProviderSamples[] = [
  {
    preset: "stripe",
    start: startStripe,
    create: (url) => ({
      on: "POST /v1/webhook_endpoints",
      form: { url, "enabled_events[]": "charge.succeeded" },
    }),
    list: { on: "GET /v1/webhook_endpoints?limit=100" },
    check: ({ id }) => ({ on: `GET /v1/webhook_endpoints/${id}` }),
    update: ({ id }, url) => ({ on: `POST /v1/webhook_endpoints/${id}`, form: { url } }),
    remove: ({ id }) => ({ on: `DELETE /v1/webhook_endpoints/${id}` }),
    invalid: [{ on: "POST /v1/webhook_endpoints", form: {} }, [400, "Missing required param: url."]],
    unauthorized: [401, "Invalid API Key provided"],
    limited: [403, "required permissions"],
    gone: [404, "resource_missing"],
    quota: [400, "You have reached the maximum of 1 test webhook endpoints"],
    createdSecret: (created) => JSON.parse(created).secret,
    idPath: "$.id",
  },
  {
    preset: "shopify",
    start: startShopify,
    create: (address) => ({
      on: "POST /admin/api/2026-01/webhooks.json",
      json: { webhook: { topic: "orders/create", address, format: "json" } },
    }),
    list: { on: "GET /admin/api/2026-01/webhooks.json?limit=250" },
    check: ({ id }) => ({ on: `GET /admin/api/2026-01/webhooks/${id}.json` }),
    update: ({ id }, address) => ({
      on: `PUT /admin/api/2026-01/webhooks/${id}.json`,
      json: { webhook: { id: Number(id), address } },
    }),
    remove: ({ id }) => ({ on: `DELETE /admin/api/2026-01/webhooks/${id}.json` }),
    authorize: (token) => ({ "x-shopify-access-token": token }),
    invalid: [
      { on: "POST /admin/api/2026-01/webhooks.json", json: { webhook: { topic: "ORDERS_CREATE" } } },
      [422, "Invalid topic specified: ORDERS_CREATE"],
    ],
    unauthorized: [401, "Invalid API key or access token"],
    limited: [403, "merchant approval"],
    gone: [404, "Not Found"],
    exists: [422, "for this topic has already been taken"],
    idPath: "$headers['x-shopify-webhook-id']",
  },
  {
    preset: "airtable",
    start: startAirtable,
    create: (notificationUrl) => ({
      on: "POST /v0/bases/app00000000000000/webhooks",
      json: { notificationUrl, specification: { options: { filters: { dataTypes: ["tableData"] } } } },
    }),
    list: { on: "GET /v0/bases/app00000000000000/webhooks" },
    check: ({ id }) => ({ on: `GET /v0/bases/app00000000000000/webhooks/${id}/payloads` }),
    renew: ({ id }) => ({ on: `POST /v0/bases/app00000000000000/webhooks/${id}/refresh` }),
    remove: ({ id }) => ({ on: `DELETE /v0/bases/app00000000000000/webhooks/${id}` }),
    invalid: [
      { on: "POST /v0/bases/app00000000000000/webhooks", json: {} },
      [422, "INVALID_REQUEST_UNKNOWN"],
    ],
    unauthorized: [401, "AUTHENTICATION_REQUIRED"],
    limited: [403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND"],
    gone: [404, "NOT_FOUND"],
    quota: [403, "TOO_MANY_WEBHOOKS_IN_BASE"],
    lifetimeMs: 7 * DAY_MS,
    createdSecret: (created) => JSON.parse(created).macSecretBase64,
    idPath: "none",
  },
  {
    preset: "hubspot",
    start: startHubSpot,
    create: (targetUrl) => ({
      on: "PUT /webhooks/v3/1/settings",
      json: { targetUrl, throttling: { maxConcurrentRequests: 10 } },
    }),
    check: () => ({ on: "GET /webhooks/v3/1/settings" }),
    update: (_, targetUrl) => ({
      on: "PUT /webhooks/v3/1/settings",
      json: { targetUrl, throttling: { maxConcurrentRequests: 10 } },
    }),
    remove: () => ({ on: "DELETE /webhooks/v3/1/settings" }),
    invalid: [{ on: "PUT /webhooks/v3/1/settings", json: {} }, [400, "VALIDATION_ERROR"]],
    unauthorized: [401, "INVALID_AUTHENTICATION"],
    limited: [403, "MISSING_SCOPES"],
    gone: [404, "OBJECT_NOT_FOUND"],
    idPath: "none",
    isSingle: true,
  },
  {
    preset: "calendly",
    start: startCalendly,
    create: (url) => ({
      on: "POST /webhook_subscriptions",
      json: {
        url,
        events: ["invitee.created"],
        organization: CALENDLY_ORGANIZATION,
        scope: "organization",
        signing_key: OUR_SECRET,
      },
    }),
    list: {
      on: `GET /webhook_subscriptions?scope=organization&organization=${encodeURIComponent(CALENDLY_ORGANIZATION)}`,
    },
    check: ({ id }) => ({ on: `GET /webhook_subscriptions/${id}` }),
    remove: ({ id }) => ({ on: `DELETE /webhook_subscriptions/${id}` }),
    invalid: [{ on: "POST /webhook_subscriptions", json: {} }, [400, "Invalid Argument"]],
    unauthorized: [401, "Unauthenticated"],
    limited: [403, "Permission Denied"],
    gone: [404, "Resource Not Found"],
    exists: [409, "Hook with this url already exists"],
    quota: [403, "limit of webhook subscriptions"],
    idPath: "none",
  },
  {
    preset: "typeform",
    start: startTypeform,
    create: (url) => ({
      on: "PUT /forms/abc123/webhooks/ours",
      json: { url, enabled: true, secret: OUR_SECRET },
    }),
    list: { on: "GET /forms/abc123/webhooks" },
    check: ({ id }) => ({ on: `GET /forms/abc123/webhooks/${id}` }),
    update: ({ id }, url) => ({
      on: `PUT /forms/abc123/webhooks/${id}`,
      json: { url, enabled: true, secret: OUR_SECRET },
    }),
    remove: ({ id }) => ({ on: `DELETE /forms/abc123/webhooks/${id}` }),
    invalid: [{ on: "PUT /forms/abc123/webhooks/ours", json: {} }, [400, "VALIDATION_ERROR"]],
    unauthorized: [401, "AUTHENTICATION_FAILED"],
    limited: [403, "webhooks:write"],
    gone: [404, "NOT_FOUND"],
    quota: [400, "LIMIT_REACHED"],
    idPath: "$.event_id",
  },
];
