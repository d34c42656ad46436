"""What happens to one request: recommend, feedback, retries, tokens, the registry, releases.

    services   what a worker opens, and how the parts are joined
    recommend  questions in, answers out
    feedback   rewards in, receipts out
    batcher    what arrives in one turn of the event loop goes together
    lane       long work in short pieces
    rates      how often a key may ask
    retries    answers kept under a caller's event id
    tokens     sealed recommendation ids
    registry   which recommenders exist, seen alike by every worker
    release    from sums to models, and from models into memory
    background what runs beside requests
    forwards   answering another vendor's users
    clients    what is kept about one client
    keys       API keys

May import families, state and privacy.
"""
