type Descriptions = Readonly<Record<string, string>>;

/** Headings of the API reference with their descriptions, in display order. */
const EVENTS: Descriptions = {
  Hooks: "The addresses of push channels, to which senders post deliveries.",
  Apps: "Installations of blueprints. An app contains channels, the events that they publish, and subscriptions to these events.",
  Channels:
    "A channel brings events into an app, according to its settings and event definitions. The catalogs list the available channel kinds, verification schemes and provider presets.",
  Subscriptions: "Readers and handlers of an app's events, with their progress.",
  Events: "Published events. You can list them, stream them, and delete them for privacy.",
  Topics: "The Redis streams to which events are published.",
  Deliveries: "The newest deliveries of each channel as they were received, with their results.",
  Quarantine:
    "Items of accepted deliveries that could not be published. You can inspect, redrive and delete them.",
  "Agent subscriptions":
    "Subscriptions that AI agents have made through the MCP server, to get events at a callback URL.",
  "Dead letters":
    "Events that a subscription's handler did not accept. You can inspect, redrive and delete them.",
  Sources: "State, cursor and dry runs of channels that fetch events.",
  Registrations: "Webhooks that Inlet has registered at providers, with their state.",
  Metrics: "Exact counts of the event path over time, by channel and type.",
  Lookup: "Finds entities by any id.",
  Problems: "Problems that Inlet has detected in an organization, such as failing channels and handlers.",
  Connections: "Credentials for the requests that Inlet sends to sources and handlers.",
  Blueprints: "Templates for apps: channels and their event definitions, without secrets.",
  Operations: "Health, metrics, documentation and console of the gateway.",
};

const ACCESS: Descriptions = {
  Authentication: "Access tokens.",
  "API keys": "Tokens for callers of this API.",
  Organizations: "Organizations own all other resources. A resource is visible only within its organization.",
  Spaces: "Parts of an organization. Each app is installed in a space.",
  Accounts: "People and services that can act in an organization.",
  Identities: "Names of accounts at external identity providers.",
  Memberships: "Accounts that belong to an organization, with their roles in it.",
  Groups: "Groups of accounts.",
  Roles: "Named sets of permissions.",
  Permissions: "The permissions that can be granted. Inlet defines them.",
  Audit: "Log of all changes with their authors, and counts of rejected requests.",
};

const PLATFORM: Descriptions = {
  Store: "Stores with their categories, artifacts, pricing plans, orders and reviews.",
  Agents: "Agents that take part in rooms and conversations.",
  "Knowledge bases": "Collections of knowledge for agents.",
  Rooms: "Meeting places for participants, with their messages.",
  Conversations: "Exchanges of messages between participants. A conversation can be live.",
  Tasks: "Trees of tasks, each with a state.",
  Telephony: "Phone numbers, and the SIP trunks that connect them.",
  State: "States and their variables.",
  Forms: "Forms and their inputs.",
  Collections: "Records with the fields that their collection defines.",
};

interface TagGroup {
  readonly name: string;
  /** Shown by the API reference next to the name of a collapsed group. */
  readonly description: string;
  readonly tags: Descriptions;
}

/** Groups of tags in the order of the API reference, which collapses all but the first group. */
const GROUPS: readonly TagGroup[] = [
  { name: "Events and channels", description: "How events enter Inlet, and who gets them.", tags: EVENTS },
  {
    name: "Access",
    description: "Organizations, accounts, roles and keys: who may call this API.",
    tags: ACCESS,
  },
  {
    name: "Platform",
    description:
      "Resources without any effect on events. They exist because Inlet implements the interface of a larger platform, whose clients expect them.",
    tags: PLATFORM,
  },
];

/** Returns the used tags with their descriptions, in the order of `GROUPS`. Tags without a description come last. */
export function describeTags(used: ReadonlySet<string>): readonly object[] {
  const descriptions: Descriptions = Object.assign({}, ...GROUPS.map(({ tags }) => tags));
  const known = Object.keys(descriptions).filter((name) => used.has(name));
  const others = [...used].filter((name) => !(name in descriptions));
  return [
    ...known.map((name) => ({ name, description: descriptions[name] })),
    ...others.map((name) => ({ name })),
  ];
}

/** Returns the groups of the used tags, in the form of the OpenAPI extension `x-tagGroups`. */
export const groupTags = (used: ReadonlySet<string>): readonly object[] =>
  GROUPS.map(({ name, description, tags }) => ({
    name,
    description,
    tags: Object.keys(tags).filter((tag) => used.has(tag)),
  }));
