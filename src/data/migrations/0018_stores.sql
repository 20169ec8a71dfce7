-- served from 0008

CREATE TABLE stores (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  name text NOT NULL,
  description text,
  logo text,
  banner text,
  privacy_policy_url text,
  terms_url text,
  allow_submissions boolean NOT NULL,
  is_public boolean NOT NULL,
  require_approval boolean NOT NULL,
  commission_rate numeric NOT NULL CHECK (commission_rate BETWEEN 0 AND 100 AND scale(commission_rate) <= 4),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX stores_organization ON stores (organization_id, created_at, id);
CREATE INDEX stores_public ON stores (created_at, id) WHERE is_public;

CREATE TABLE store_categories (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations,
  store_id text NOT NULL REFERENCES stores ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT store_categories_name UNIQUE (store_id, name),
  -- What a category of an artifact's own store is told by.
  UNIQUE (id, store_id)
);
CREATE INDEX store_categories_organization ON store_categories (organization_id, created_at, id);
CREATE INDEX store_categories_store ON store_categories (store_id, created_at, id);

-- Where an artifact was offered and for what has been free text (store_id, price, currency): programs before this one write
-- these columns, no later one reads them.
ALTER TABLE artifacts
  ADD COLUMN offered_in text REFERENCES stores,
  ADD COLUMN category_id text,
  ADD COLUMN status text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'pending', 'published', 'rejected')),
  ADD CONSTRAINT artifacts_category FOREIGN KEY (category_id, offered_in) REFERENCES store_categories (id, store_id),
  ADD CHECK (category_id IS NULL OR offered_in IS NOT NULL),
  ADD CHECK ((status = 'draft') = (offered_in IS NULL));
CREATE INDEX artifacts_store ON artifacts (offered_in, created_at, id);
CREATE INDEX artifacts_store_category ON artifacts (category_id, created_at, id);

CREATE TABLE pricing_plans (
  id text PRIMARY KEY,
  -- That of the artifact.
  organization_id text NOT NULL REFERENCES organizations,
  artifact_id text NOT NULL REFERENCES artifacts ON DELETE CASCADE,
  name text NOT NULL,
  -- Amounts have no scale: answered as they were given.
  price numeric NOT NULL CHECK (price >= 0),
  currency text NOT NULL,
  interval text CHECK (interval IN ('month', 'year')),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT pricing_plans_name UNIQUE (artifact_id, name),
  -- What a plan of an order's own artifact is told by.
  UNIQUE (id, artifact_id)
);
CREATE INDEX pricing_plans_organization ON pricing_plans (organization_id);
CREATE INDEX pricing_plans_artifact ON pricing_plans (artifact_id, created_at, id);
INSERT INTO pricing_plans
SELECT 'plan_' || substr(id, 5), organization_id, id, 'Standard', price, currency, NULL, created_at, updated_at
FROM artifacts WHERE price IS NOT NULL;

CREATE TABLE store_orders (
  id text PRIMARY KEY,
  -- The buyer's.
  organization_id text NOT NULL REFERENCES organizations,
  store_organization_id text NOT NULL REFERENCES organizations,
  order_number text NOT NULL UNIQUE,
  artifact_id text NOT NULL REFERENCES artifacts,
  store_id text NOT NULL REFERENCES stores,
  pricing_plan_id text NOT NULL,
  -- No reference: who bought stays known when the account is gone.
  buyer_id text NOT NULL,
  transaction_id text,
  license_key text UNIQUE,
  payment_method text,
  currency text NOT NULL,
  -- What was ordered: the plan may change.
  interval text CHECK (interval IN ('month', 'year')),
  subtotal numeric NOT NULL CHECK (subtotal >= 0),
  tax numeric NOT NULL CHECK (tax >= 0),
  total numeric NOT NULL CHECK (total = subtotal + tax),
  commission numeric NOT NULL CHECK (commission BETWEEN 0 AND subtotal),
  status text NOT NULL CHECK (status IN ('pending', 'paid', 'refunded', 'expired', 'canceled')),
  paid_at timestamptz,
  expires_at timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  FOREIGN KEY (pricing_plan_id, artifact_id) REFERENCES pricing_plans (id, artifact_id),
  CHECK ((license_key IS NULL) = (paid_at IS NULL)),
  CHECK (status <> 'pending' OR paid_at IS NULL),
  CHECK (status NOT IN ('paid', 'refunded') OR paid_at IS NOT NULL)
);
CREATE INDEX store_orders_organization ON store_orders (organization_id, created_at, id);
CREATE INDEX store_orders_store_organization ON store_orders (store_organization_id, created_at, id);
CREATE INDEX store_orders_store ON store_orders (store_id, created_at, id);
CREATE INDEX store_orders_artifact ON store_orders (artifact_id, organization_id, status);
CREATE INDEX store_orders_pricing_plan ON store_orders (pricing_plan_id, artifact_id);

CREATE TABLE store_reviews (
  id text PRIMARY KEY,
  -- The reviewer's.
  organization_id text NOT NULL REFERENCES organizations ON DELETE CASCADE,
  artifact_id text NOT NULL REFERENCES artifacts ON DELETE CASCADE,
  store_id text NOT NULL REFERENCES stores,
  -- No reference: who wrote it stays known when the account is gone.
  reviewer_id text NOT NULL,
  title text,
  content text,
  rating integer NOT NULL CHECK (rating BETWEEN 1 AND 5),
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT store_reviews_reviewer UNIQUE (artifact_id, reviewer_id)
);
CREATE INDEX store_reviews_organization ON store_reviews (organization_id, created_at, id);
CREATE INDEX store_reviews_artifact ON store_reviews (artifact_id, created_at, id);
CREATE INDEX store_reviews_store ON store_reviews (store_id, created_at, id);
