/** The headings of the document in their order, with what stands below each: events first, then what is around them. */
const TAGS: Readonly<Record<string, string>> = {
  Hooks: "Where deliveries are sent to: the address of a push channel.",
  Apps: "Installs of blueprints. An app holds channels, the events that they publish, and subscriptions to these.",
  Channels:
    "One way each for an app's events to come in, and its rules. Also the catalogs of what a channel can be set to: kinds, verification schemes, presets of providers.",
  Subscriptions: "Who reads the events of an app, from where on, and the handlers that are called with them.",
  Events: "What was published: read, streamed, deleted for privacy.",
  Topics: "The Redis streams that events are published to.",
  Deliveries: "The newest deliveries of each channel as they came, and what came of them.",
  Quarantine:
    "Deliveries that were accepted and could not be published as they are: looked into, sent again, deleted.",
  "Dead letters": "Events that a subscription's handler did not take: looked into, sent again, deleted.",
  Sources: "The running side of channels that fetch: state, cursor, dry runs.",
  Problems: "What is wrong with what an organization has, and since when.",
  Connections: "Credentials for calls that Inlet makes: of sources and of handlers.",
  Blueprints: "What apps are installed from: channels and their rules, without secrets.",
  Authentication: "Access tokens.",
  "API keys": "The tokens that callers of this API carry.",
  Organizations: "Who owns everything else. Nothing is seen from outside its organization.",
  Spaces: "Parts of an organization; an app is installed in one.",
  Accounts: "Those who call and act: persons and services.",
  Identities: "What an account is called by a provider of identities.",
  Memberships: "Which accounts belong to an organization, and what they may do in it.",
  Groups: "Accounts that belong together.",
  Roles: "Named sets of permissions.",
  Permissions: "What there is to be allowed. Made by Inlet, one for each name.",
  Audit: "Who changed what, and what was refused.",
  Store: "Stores, their categories and artifacts, the orders for these and the reviews of them.",
  Agents: "Those that answer in rooms and conversations.",
  "Knowledge bases": "What agents know.",
  Rooms: "Where participants meet, and their messages.",
  Conversations: "Exchanges of messages, live ones among them.",
  Tasks: "Work to be done: a tree of tasks, each with its state.",
  Telephony: "Phone numbers, and the SIP trunks that carry them.",
  State: "States and their variables.",
  Forms: "Forms and their inputs.",
  Collections: "Records by fields that a collection defines.",
  Operations: "How the gateway is, and what it says of itself.",
};

/** The tags that are in use, in the order of their headings; those that have none come last. */
export function describeTags(used: ReadonlySet<string>): readonly object[] {
  const known = Object.keys(TAGS).filter((name) => used.has(name));
  const others = [...used].filter((name) => !(name in TAGS));
  return [...known.map((name) => ({ name, description: TAGS[name] })), ...others.map((name) => ({ name }))];
}
