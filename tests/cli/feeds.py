"""The feed of a load of messages, in memory."""

from lakewriter.source.messages.backlog import read_piece


class Feed:
    """What a load is given: the places of its records, and how it ends."""

    def __init__(self):
        self.places, self.ended, self.given_up = list[int](), False, False

    def hand(self, piece):
        self.places += read_piece(piece.path).column("row").to_pylist()

    def end(self):
        self.ended = True

    def give_up(self):
        self.given_up = True
