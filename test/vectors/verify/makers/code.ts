import { hs256 } from "./jwt.ts";
import {
  AT_MS,
  basic,
  caseOf,
  delivery,
  hash,
  hmac,
  JSON_TYPE,
  json,
  ofBody,
  type Recipe,
  type Sent,
  texts,
  withHeaders,
} from "./kit.ts";

const ID = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const ATLASSIAN = "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/";
const CIRCLECI = "https://circleci.com/docs/guides/integration/outbound-webhooks/";

/** The example that Atlassian publishes for tests of implementations. */
const ATLASSIAN_EXAMPLE = caseOf({
  name: "the example of Atlassian's documentation",
  kind: "accept",
  origin: "documented",
  source: ATLASSIAN,
  secrets: [{ value: "It's a Secret to Everybody" }],
  request: {
    headers: {
      "content-type": "text/plain",
      "x-hub-signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9",
    },
    body: "Hello World!",
  },
  expect: { verified: true },
});

/** Providers of code hosting, builds, packages, issue tracking and monitoring. */
export const code: Readonly<Record<string, Recipe>> = {
  github: {
    source: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
    sent: delivery({ "x-github-event": "push", "x-github-delivery": ID }, { ref: "refs/heads/main" }),
    sign: ofBody("x-hub-signature-256", "sha256="),
    events: [{ type: "push", id: ID }],
    more: [
      caseOf({
        name: "the example of GitHub's documentation",
        kind: "accept",
        origin: "documented",
        source: "https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
        secrets: [{ value: "It's a Secret to Everybody" }],
        request: {
          headers: {
            "content-type": "text/plain",
            "x-github-event": "push",
            "x-github-delivery": ID,
            "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
          },
          body: "Hello, World!",
        },
        expect: { events: [{ type: "push", id: ID }] },
      }),
    ],
  },
  gitlab: {
    source: "https://docs.gitlab.com/user/project/integrations/webhooks/",
    sent: delivery({ "x-gitlab-event": "Push Hook", "idempotency-key": ID }, { object_kind: "push" }),
    sign: (sent, key) => withHeaders(sent, { "x-gitlab-token": key }),
    alter: (sent) => withHeaders(sent, { "x-gitlab-token": `${sent.headers["x-gitlab-token"]} ` }),
    uncovered: (sent) => ({ ...sent, body: json({ object_kind: "push", altered: true }) }),
    events: [{ type: "Push Hook", id: ID }],
    more: (["accept", "altered", "stale"] as const).map(gitlabSigned),
  },
  bitbucket: {
    source: ATLASSIAN,
    sent: delivery({ "x-event-key": "repo:push", "x-request-uuid": ID }, { push: { changes: [] } }),
    sign: ofBody("x-hub-signature", "sha256="),
    events: [{ type: "repo:push", id: ID }],
    more: [ATLASSIAN_EXAMPLE],
  },
  gitea: {
    source: "https://docs.gitea.com/usage/webhooks",
    sent: delivery({ "x-gitea-event": "push", "x-gitea-delivery": ID }, { ref: "refs/heads/main" }),
    sign: ofBody("x-gitea-signature"),
    events: [{ type: "push", id: ID }],
  },
  forgejo: {
    source: "https://forgejo.org/docs/latest/user/webhooks/",
    sent: delivery({ "x-forgejo-event": "push", "x-forgejo-delivery": ID }, { ref: "refs/heads/main" }),
    sign: ofBody("x-forgejo-signature"),
    events: [{ type: "push", id: ID }],
  },
  vercel: {
    source: "https://vercel.com/docs/webhooks/webhooks-api",
    sent: delivery({}, { id: "uev_x7Q1", type: "deployment.created", createdAt: AT_MS, payload: {} }),
    sign: ofBody("x-vercel-signature", "", "sha1"),
    events: [{ type: "deployment.created", id: "uev_x7Q1" }],
  },
  netlify: {
    source: "https://docs.netlify.com/deploy/deploy-notifications/",
    sent: delivery({}, { id: "52465f1803cf7ca2e4000001", state: "ready" }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-webhook-signature": hs256(key, { iss: "netlify", sha256: hash("sha256", sent.body, "hex") }),
      }),
    events: [{ type: "ready", id: null }],
  },
  heroku: {
    source: "https://devcenter.heroku.com/articles/app-webhooks",
    sent: delivery(
      {},
      {
        action: "create",
        webhook_metadata: { event: { id: ID, include: "api:release" }, attempt: { id: "1" } },
      },
    ),
    sign: ofBody("heroku-webhook-hmac-sha256", "", "sha256", "base64"),
    events: [{ type: "api:release", id: ID }],
  },
  circleci: {
    source: CIRCLECI,
    sent: delivery({ "circleci-event-type": "job-completed" }, { id: ID, type: "job-completed" }),
    sign: ofBody("circleci-signature", "v1="),
    events: [{ type: "job-completed", id: ID }],
    more: [
      caseOf({
        name: "an example of CircleCI's documentation",
        kind: "accept",
        origin: "documented",
        source: CIRCLECI,
        secrets: [{ value: "hunter123" }],
        request: {
          headers: {
            "content-type": "text/plain",
            "circleci-signature": "v1=9be2242094a9a8c00c64306f382a7f9d691de910b4a266f67bd314ef18ac49fa",
          },
          body: "an-important-request-payload",
        },
        expect: { verified: true },
      }),
    ],
  },
  buildkite: {
    source: "https://buildkite.com/docs/apis/webhooks/pipelines",
    sent: delivery({ "x-buildkite-event": "build.finished" }, { event: "build.finished", build: { id: ID } }),
    sign: (sent, key, atMs) => {
      const timestamp = String(atMs / 1_000);
      const signature = hmac("sha256", key, `${timestamp}.${sent.body}`, "hex");
      return withHeaders(sent, { "x-buildkite-signature": `timestamp=${timestamp},signature=${signature}` });
    },
    toleranceSeconds: 300,
    events: [{ type: "build.finished", id: null }],
  },
  npm: {
    source: "https://github.com/npm/registry/blob/main/docs/hooks/endpoints.md",
    sent: delivery({}, { event: "package:publish", name: "left-pad", version: "1.0.0" }),
    sign: ofBody("x-npm-signature", "sha256="),
    events: [{ type: "package:publish", id: null }],
  },
  "docker-hub": {
    source: "https://docs.docker.com/docker-hub/repos/manage/webhooks/",
    secrets: null,
    sent: delivery({}, { push_data: { tag: "latest" }, repository: { repo_name: "acme/app" } }),
    sign: (sent) => sent,
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("latest", "altered") }),
    events: [{ type: "received", id: null }],
  },
  "terraform-cloud": {
    source: "https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations",
    sent: delivery(
      {},
      { payload_version: 1, run_id: "run-1", notifications: [{ trigger: "run:completed" }] },
    ),
    sign: ofBody("x-tfe-notification-signature", "", "sha512"),
    events: [{ type: "run:completed", id: null }],
  },
  sentry: {
    source: "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
    sent: delivery({ "sentry-hook-resource": "issue", "request-id": ID }, { action: "created", data: {} }),
    sign: ofBody("sentry-hook-signature"),
    events: [{ type: "issue", id: null }],
  },
  linear: {
    source: "https://linear.app/developers/webhooks",
    sent: delivery(
      { "linear-event": "Issue", "linear-delivery": ID },
      { action: "create", type: "Issue", webhookTimestamp: AT_MS },
    ),
    sign: (sent, key, atMs) => {
      const body = sent.body.replace(String(AT_MS), String(atMs));
      return withHeaders({ ...sent, body }, { "linear-signature": hmac("sha256", key, body, "hex") });
    },
    toleranceSeconds: 60,
    events: [{ type: "Issue", id: ID }],
  },
  jira: {
    source: "https://developer.atlassian.com/cloud/jira/platform/webhooks/",
    sent: delivery(
      { "x-atlassian-webhook-identifier": ID },
      { webhookEvent: "jira:issue_created", timestamp: AT_MS },
    ),
    sign: ofBody("x-hub-signature", "sha256="),
    events: [{ type: "jira:issue_created", id: ID }],
    more: [ATLASSIAN_EXAMPLE],
  },
  pagerduty: {
    source: "https://support.pagerduty.com/main/docs/webhooks",
    sent: delivery({}, { event: { id: "01BWDJR5QRGX1HQ4", event_type: "incident.triggered", data: {} } }),
    sign: (sent, key) =>
      withHeaders(sent, {
        "x-pagerduty-signature": `v1=${hmac("sha256", "another active secret", sent.body, "hex")},v1=${hmac("sha256", key, sent.body, "hex")}`,
      }),
    events: [{ type: "incident.triggered", id: "01BWDJR5QRGX1HQ4" }],
  },
  launchdarkly: {
    source: "https://launchdarkly.com/docs/home/infrastructure/webhooks",
    sent: delivery({}, { _id: "5f2f6a1e1b8c", kind: "flag", name: "New checkout" }),
    sign: ofBody("x-ld-signature"),
    events: [{ type: "flag", id: "5f2f6a1e1b8c" }],
  },
  datadog: {
    source: "https://docs.datadoghq.com/integrations/webhooks/",
    secrets: texts("inlet:9f2c41", "inlet:77aa0b", "inlet:000000"),
    sent: delivery({}, { id: "8042123456", event_type: "query_alert_monitor", title: "[Triggered] Load" }),
    sign: basic,
    alter: (sent) => basic(sent, "inlet:9f2c42"),
    uncovered: (sent) => ({ ...sent, body: sent.body.replace("Load", "Disk") }),
    events: [{ type: "query_alert_monitor", id: "8042123456" }],
  },
  grafana: {
    source:
      "https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/",
    sent: delivery({}, { receiver: "inlet", status: "firing", alerts: [], groupKey: "{}:{}" }),
    sign: ofBody("x-grafana-alerting-signature"),
    events: [{ type: "firing", id: null }],
  },
};

/** Creates a case with GitLab's signing token, which follows Standard Webhooks with the Idempotency-Key as id. */
function gitlabSigned(kind: "accept" | "altered" | "stale") {
  const bytes = Buffer.alloc(32, "signing token");
  const body = json({ object_kind: "push" });
  const seconds = String(AT_MS / 1_000 - (kind === "stale" ? 301 : 0));
  const request: Sent = {
    headers: {
      ...JSON_TYPE,
      "x-gitlab-event": "Push Hook",
      "idempotency-key": ID,
      "webhook-id": ID,
      "webhook-timestamp": seconds,
      "webhook-signature": `v1,${hmac("sha256", bytes, `${ID}.${seconds}.${body}`, "base64")}`,
    },
    body: kind === "altered" ? json({ object_kind: "tag_push" }) : body,
  };
  return caseOf({
    name: "a delivery with a signing token", kind, request,
    secrets: [{ value: `whsec_${bytes.toString("base64")}` }],
    expect: kind === "accept" ? { events: [{ type: "Push Hook", id: ID }] } : { refused: "mismatch" },
  });
}
